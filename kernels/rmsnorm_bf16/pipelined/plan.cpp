#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N");
  // A few blocks a worker even out their speeds; one worker needs no more than one.
  const auto rows = hone::ceil_div(m, problem.workers == 1 ? 1 : problem.param("BLOCKS") * problem.workers);
  const auto kernel = plan.module("kernel.cpp", {{"WIDE", problem.param("WIDE")}, {"AT_ONCE", problem.param("AT_ONCE")}});
  plan.launch(kernel, "rmsnorm", {hone::ceil_div(m, rows)})
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("y"), m, n, rows);
}
