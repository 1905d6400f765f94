#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.memset(problem.tensor("x"), 0);
  plan.launch(plan.module("kernel.cpp"), "softmax", {problem.axis("M")})
      .args(problem.tensor("x"), problem.tensor("y"), problem.axis("M"), problem.axis("N"));
}
