#include <hone/plan.h>

#include <algorithm>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N");
  const std::int64_t vector = n % 4 == 0 ? 4 : 1;
  const auto elements = problem.param("ELEMENTS");            // of a thread, the most
  // Blocks of a cluster share a row that is too long for one block's registers.
  std::int64_t cluster = 1;
  while (cluster < 8 && n > cluster * 1024 * elements) cluster *= 2;
  if (n > cluster * 1024 * elements) throw hone::Unsupported("rows this long do not fit the registers of a cluster");
  const auto warps = std::clamp<std::int64_t>(hone::ceil_div(n, cluster * 32 * problem.param("WANTED")), 1, 32);
  const auto threads = 32 * warps, loads = hone::ceil_div(n, cluster * threads * vector);
  const std::int64_t rows = threads == 32 && cluster == 1 ? 4 : 1;
  auto module = plan.module("kernel.cu", {{"THREADS", threads}, {"ROWS", rows}, {"VECTOR", vector}, {"LOADS", loads}, {"CLUSTER", cluster}});
  plan.launch(module, "softmax", {hone::ceil_div(m, rows) * cluster}, {threads * rows})
      .cluster({cluster})
      .args(problem.tensor("x"), problem.tensor("y"), static_cast<std::int32_t>(m), static_cast<std::int32_t>(n));
}
