#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cu"), "steady", {problem.axis("N") / 256}, {256})
      .args(problem.tensor("x"), problem.tensor("y"), static_cast<std::int32_t>(problem.axis("STEPS")));
}
