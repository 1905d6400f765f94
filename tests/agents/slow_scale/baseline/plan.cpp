#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "twice", {1}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
