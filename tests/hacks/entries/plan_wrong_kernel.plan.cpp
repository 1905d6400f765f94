#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "soft_max", {problem.axis("M")})
      .args(problem.tensor("x"), problem.tensor("y"), problem.axis("M"), problem.axis("N"));
}
