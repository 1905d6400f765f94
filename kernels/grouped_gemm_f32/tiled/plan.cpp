#include <hone/plan.h>

#include <string>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto groups = problem.axis("G"), n = problem.axis("N"), k = problem.axis("K");
  const auto& d = problem.tensor("D");
  const auto param = [&](const char* name) { return std::to_string(problem.param(name)); };
  const auto bn = problem.param("BN");
  const std::int64_t lanes = 16;   // the most that the kernel uses: scratch for one packed panel
  const std::int64_t scratch = problem.param("NV") * lanes * problem.param("KC") * 4;
  const std::string kernel = "gemm<" + param("MR") + ", " + param("NR") + ", " + param("DOT_PREFETCH") + ", " +
                             param("PMR") + ", " + param("NV") + ", " + param("KC") + ", " +
                             param("PACK_PREFETCH") + ">";
  plan.launch(plan.module("kernel.cpp"), kernel, {hone::ceil_div(n, bn), groups})
      .shared(scratch)
      .args(problem.tensor("A"), problem.tensor("B"), problem.tensor("starts"), problem.tensor("rows"), d, n, k,
            d.strides[0], bn, problem.param("PACK_ROWS"), problem.param("AHEAD"));
}
