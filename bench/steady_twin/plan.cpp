#include <hone/plan.h>

// PERCENT: how much slower than the baseline.
void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "steady", {200 + 2 * problem.param("PERCENT")})
      .args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
