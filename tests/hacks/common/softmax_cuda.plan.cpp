#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cu"), "softmax", {problem.axis("M")}, {256})
      .args(problem.tensor("x"), problem.tensor("y"), problem.axis("M"), problem.axis("N"));
}
