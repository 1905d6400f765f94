#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N"), k = problem.axis("K");
  const hone::TensorMapSpec tile{.box = {128, 128}, .strides = {}, .swizzle = "128B", .l2 = "256B"};
  plan.launch(plan.module("kernel.cu"), "gemm", {n / 128, m / 128}, {256})
      .shared(1024 + 4 * 2 * 128 * 128)
      .args(plan.tensor_map("a", problem.tensor("A"), tile), plan.tensor_map("b", problem.tensor("B"), tile), problem.tensor("SFA"),
            problem.tensor("SFB"), problem.tensor("D"), static_cast<std::int32_t>(m), static_cast<std::int32_t>(n),
            static_cast<std::int32_t>(k));
}
