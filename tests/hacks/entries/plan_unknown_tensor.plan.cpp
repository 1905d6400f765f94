#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "softmax", {problem.axis("M")})
      .args(problem.tensor("logits"), problem.tensor("y"), problem.axis("M"), problem.axis("N"));
}
