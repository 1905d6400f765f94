#include <hone/plan.h>

#include <algorithm>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto groups = problem.axis("G"), n = problem.axis("N"), k = problem.axis("K");
  const auto& d = problem.tensor("D");
  // Widened rows of A at a time: about 256 KB, half of a small L2.
  const std::int64_t chunk = std::clamp<std::int64_t>(65536 / k / 16 * 16, 64, 192);
  // A block widens its group's A for itself, so one worker takes all columns at once. 12 is a
  // multiple of both tiles' widths.
  const std::int64_t parts = problem.workers == 1 ? 1 : 4 * problem.workers;
  const std::int64_t bn = hone::ceil_div(hone::ceil_div(n, parts), 12) * 12;
  plan.launch(plan.module("kernel.cpp"), "gemm", {hone::ceil_div(n, bn), groups})
      .shared((chunk + 4) * hone::ceil_div(k, 32) * 32 * 4)
      .args(problem.tensor("A"), problem.tensor("B"), problem.tensor("starts"), problem.tensor("rows"), d, n, k,
            d.strides[0], bn, chunk);
}
