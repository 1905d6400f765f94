#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  auto module = plan.module("kernel.cpp", {{"V", problem.param("V")}, {"STEP", problem.param("STEP")}});
  plan.launch(module, "twice", {1}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
