#include <hone/plan.h>

#include <algorithm>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N"), k = problem.axis("K");
  const auto tile_m = problem.param("TILE_M"), tile_n = problem.param("TILE_N"), stages = problem.param("STAGES");
  const auto cluster = problem.param("CLUSTER");
  if (n % 128 != 0 || k % 128 != 0 || m % 128 != 0) throw hone::Unsupported("M, N and K must be multiples of 128");
  if (k > 16384) throw hone::Unsupported("K may be 16384 at most");
  const auto& a = problem.tensor("A");
  const auto& b = problem.tensor("B");
  const auto& d = problem.tensor("D");

  auto module = plan.module("kernel.cu", {{"TILE_M", tile_m}, {"TILE_N", tile_n}, {"STAGES", stages}, {"CLUSTER", cluster},
                                          {"PARTS", problem.param("PARTS")}, {"ORDERED", problem.param("ORDERED")},
                                          {"BAND", problem.param("BAND")}, {"SHAPE_N", n}, {"SHAPE_K", k}});
  const hone::TensorMapSpec rows_of_a{.box = {64, 128}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  const hone::TensorMapSpec columns_of_b{.box = {1, tile_n, 128}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  const hone::TensorMapSpec piece_of_d{.box = {64, 64}, .strides = {}, .swizzle = "128B"};
  // As kernel.cu lays out shared memory: operands, results, scales, mbarriers; 1024 to align the first.
  const auto shared = 1024 + stages * (tile_m + tile_n) * 128 + tile_m * tile_n * 2 + stages * (tile_m * 4 + 16) + k / 128 * 16;
  const auto clusters = std::min(problem.workers / cluster, hone::ceil_div(m, tile_m) * hone::ceil_div(n, tile_n * cluster));
  plan.launch(module, "grouped_gemm", {clusters * cluster}, {384})
      .cluster({cluster})
      .shared(shared)
      .args(plan.tensor_map("a", a, rows_of_a), plan.tensor_map("b", b, columns_of_b), plan.tensor_map("d", d, piece_of_d),
            problem.tensor("SFA"), problem.tensor("SFB"), problem.tensor("groups"), static_cast<std::int32_t>(m));
}
