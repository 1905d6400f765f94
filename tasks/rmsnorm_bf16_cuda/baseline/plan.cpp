#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto n = problem.axis("N");
  plan.launch(plan.module("kernel.cu"), "rmsnorm", {problem.axis("M")}, {n > 8192 ? 1024 : 256})
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("y"), static_cast<std::int32_t>(n));
}
