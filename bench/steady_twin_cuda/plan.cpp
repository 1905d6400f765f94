#include <hone/plan.h>

// PERMILLE: how much slower than the baseline.
void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto steps = problem.axis("STEPS") * (1000 + problem.param("PERMILLE")) / 1000;
  plan.launch(plan.module("kernel.cu"), "steady", {problem.axis("N") / 256}, {256})
      .args(problem.tensor("x"), problem.tensor("y"), static_cast<std::int32_t>(steps));
}
