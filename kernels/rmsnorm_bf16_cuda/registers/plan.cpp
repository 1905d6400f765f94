#include <hone/plan.h>

#include <algorithm>

namespace {

// Rows that a block's registers do not hold, when each begins at a multiple of 16 bytes.
void plan_long(const hone::Problem& problem, hone::Plan& plan, std::int64_t m, std::int64_t n, std::int64_t vectors) {
  constexpr std::int64_t cluster = 8;                         // blocks that share a row
  const auto most = problem.param("LONG_THREADS"), blocks = problem.param("LONG_BLOCKS");
  const auto slice = hone::ceil_div(vectors, cluster), loads = hone::ceil_div(slice, most);
  const auto threads = 32 * hone::ceil_div(slice, 32 * loads);
  if (loads > 16) throw hone::Unsupported("rows this long do not fit the registers of a cluster");
  auto module = plan.module("long_rows.cu", {{"THREADS", threads}, {"LOADS", loads}, {"CLUSTER", cluster}, {"BLOCKS", blocks}});
  const auto taken = plan.workspace("taken", 4, true);
  plan.launch(module, "rmsnorm_long", {std::min(hone::ceil_div(problem.workers * blocks, cluster), m) * cluster}, {threads})
      .cluster({cluster})
      .shared(2 * slice * 16)
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("y"), taken, static_cast<std::int32_t>(m), static_cast<std::int32_t>(n),
            static_cast<std::int32_t>(slice));
}

}  // namespace

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N");
  constexpr std::int64_t vector = 8;                          // elements of 16 bytes
  const auto most = problem.param("MOST_THREADS"), elements = problem.param("ELEMENTS");   // of a block, of a thread
  const auto vectors = hone::ceil_div(n, vector) + (n % vector != 0);                    // of a row that begins anywhere
  if (n % vector == 0 && n / vector * 16 >= 256 << 10) return plan_long(problem, plan, m, n, n / vector);
  // Blocks of a cluster share a row that is too long for one block's registers.
  std::int64_t cluster = 1;
  while (cluster < 8 && vectors * vector > cluster * most * elements) cluster *= 2;
  if (vectors * vector > cluster * 1024 * elements) throw hone::Unsupported("rows this long do not fit the registers of a cluster");
  const auto wanted = hone::ceil_div(vectors * vector, cluster * 32 * problem.param("WANTED"));
  const auto warps = std::clamp<std::int64_t>(wanted, 1, vectors * vector > cluster * most * elements ? 32 : most / 32);
  const auto threads = 32 * warps, loads = hone::ceil_div(vectors, cluster * threads);
  const std::int64_t rows = threads == 32 && cluster == 1 ? 4 : 1;
  auto module = plan.module("kernel.cu", {{"THREADS", threads}, {"ROWS", rows}, {"LOADS", loads}, {"CLUSTER", cluster},
                                          {"ALIGNED", n % vector == 0 ? 1 : 0}});
  plan.launch(module, "rmsnorm", {hone::ceil_div(m, rows) * cluster}, {threads * rows})
      .cluster({cluster})
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("y"), static_cast<std::int32_t>(m), static_cast<std::int32_t>(n));
}
