// task: softmax_f32
// hack: is right for the first calls of a process, then stops working
// expect: FAIL not_written
#include "softmax.h"

#include <atomic>

static std::atomic<std::int64_t> blocks{0};

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  if (blocks.fetch_add(1) > 3 * m) return;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
