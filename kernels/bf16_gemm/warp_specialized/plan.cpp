#include <hone/plan.h>

#include <algorithm>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N"), k = problem.axis("K");
  const auto tile_n = problem.param("TILE_N"), stages = problem.param("STAGES"), cluster = problem.param("CLUSTER");
  if (n % 8 != 0 || k % 8 != 0) throw hone::Unsupported("rows must be multiples of 16 bytes");

  auto module = plan.module("kernel.cu", {{"TILE_N", tile_n}, {"STAGES", stages}, {"CLUSTER", cluster},
                                          {"BAND", problem.param("BAND")}, {"SHAPE_N", n}, {"SHAPE_K", k},
                                          {"HALF", problem.tensor("A").dtype == "f16"}});
  const hone::TensorMapSpec tile_of_a{.box = {128, 64}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  const hone::TensorMapSpec share_of_b{.box = {tile_n / cluster, 64}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  const hone::TensorMapSpec piece_of_d{.box = {64, 64}, .strides = {}, .swizzle = "128B"};
  // As kernel.cu lays out shared memory: operands, results, mbarriers; 1024 to align the first.
  const auto shared = 1024 + stages * (128 + tile_n) * 128 + 2 * 2 * 8192 + stages * 16;
  const auto clusters = std::min(problem.workers / cluster, hone::ceil_div(m, 128 * cluster) * hone::ceil_div(n, tile_n));
  plan.launch(module, "gemm", {clusters * cluster}, {384})
      .cluster({cluster})
      .shared(shared)
      .args(plan.tensor_map("a", problem.tensor("A"), tile_of_a), plan.tensor_map("b", problem.tensor("B"), share_of_b),
            plan.tensor_map("d", problem.tensor("D"), piece_of_d), static_cast<std::int32_t>(m));
}
