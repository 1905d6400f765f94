#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "gemm", {problem.axis("G")})
      .args(problem.tensor("A"), problem.tensor("B"), problem.tensor("starts"), problem.tensor("rows"),
            problem.tensor("D"), problem.axis("M"), problem.axis("N"), problem.axis("K"),
            problem.tensor("D").strides[0]);
}
