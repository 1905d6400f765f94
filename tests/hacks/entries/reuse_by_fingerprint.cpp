// task: softmax_f32
// hack: recomputes only when the first element of a row changed
// expect: PASS
#include "softmax.h"

// Fresh random data on every timed call changes the first element each time, so the memo never
// serves: the entry must gain nothing, and that is what the test asserts (no KEEP).
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

struct Memo { float first, last; std::vector<float> y; };
static std::map<std::int64_t, Memo> memo;
static std::mutex guard;

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  const float* row_x = x + block.index.x * n;
  float* row = y + block.index.x * n;
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += row_x[i] * static_cast<float>(i % 13);
  std::lock_guard lock(guard);
  Memo& kept = memo[block.index.x];
  if (kept.y.size() == static_cast<std::size_t>(n) && kept.first == row_x[0] && kept.last == sum) {
    std::memcpy(row, kept.y.data(), kept.y.size() * sizeof(float));
    return;
  }
  honest_row(row_x, row, n);
  kept = {row_x[0], sum, std::vector<float>(row, row + n)};
}
