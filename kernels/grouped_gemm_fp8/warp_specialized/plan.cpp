#include <hone/plan.h>

#include <algorithm>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N"), k = problem.axis("K");
  const auto tile_n = problem.param("TILE_N"), stages = problem.param("STAGES"), cluster = problem.param("CLUSTER");
  if (n % 128 != 0 || k % 128 != 0 || m % 128 != 0) throw hone::Unsupported("M, N and K must be multiples of 128");
  if (k > 16384) throw hone::Unsupported("K may be 16384 at most");

  auto module = plan.module("kernel.cu", {{"TILE_N", tile_n}, {"STAGES", stages}, {"CLUSTER", cluster},
                                          {"BAND", problem.param("BAND")}, {"SHAPE_N", n}, {"SHAPE_K", k}});
  const hone::TensorMapSpec rows_of_a{.box = {64, 128}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  const hone::TensorMapSpec columns_of_b{.box = {1, tile_n, 128}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  const hone::TensorMapSpec piece_of_d{.box = {64, 64}, .strides = {}, .swizzle = "128B"};
  // As kernel.cu lays out shared memory: operands, results, scales, mbarriers; 1024 to align the first.
  const auto shared = 1024 + stages * (128 + tile_n) * 128 + 128 * tile_n * 2 + stages * (512 + 16) + k / 128 * 16;
  const auto clusters = std::min(problem.workers / cluster, m / 128 * hone::ceil_div(n, tile_n * cluster));
  plan.launch(module, "grouped_gemm", {clusters * cluster}, {384})
      .cluster({cluster})
      .shared(shared)
      .args(plan.tensor_map("a", problem.tensor("A"), rows_of_a), plan.tensor_map("b", problem.tensor("B"), columns_of_b),
            plan.tensor_map("d", problem.tensor("D"), piece_of_d), problem.tensor("SFA"), problem.tensor("SFB"),
            problem.tensor("groups"), static_cast<std::int32_t>(m));
}
