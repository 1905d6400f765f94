#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N"), k = problem.axis("K");
  plan.launch(plan.module("kernel.cu"), "grouped_gemm", {n / 128, m / 32}, {256})
      .args(problem.tensor("A"), problem.tensor("SFA"), problem.tensor("B"), problem.tensor("SFB"), problem.tensor("groups"),
            problem.tensor("D"), static_cast<std::int32_t>(m), static_cast<std::int32_t>(n), static_cast<std::int32_t>(k));
}
