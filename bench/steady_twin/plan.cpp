#include <hone/plan.h>

// PERMILLE: how much slower than the baseline.
void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "steady", {200 + problem.param("PERMILLE") / 5})
      .args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
