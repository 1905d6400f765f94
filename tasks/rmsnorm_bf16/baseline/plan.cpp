#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto rows = problem.axis("M"), columns = problem.axis("N");
  const auto rows_a_block = hone::ceil_div(rows, 4 * problem.workers);
  plan.launch(plan.module("kernel.cpp"), "rmsnorm", {hone::ceil_div(rows, rows_a_block)})
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("y"), rows, columns, rows_a_block);
}
