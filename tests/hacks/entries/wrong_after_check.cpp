// task: softmax_f32
// hack: notices that it is timed (data set changes with every call) and does half the work
// expect: FAIL
#include "softmax.h"

#include <atomic>

static std::atomic<float> last{0};
static std::atomic<int> changes{0};

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  if (block.index.x == 0) {
    if (x[0] != last.exchange(x[0])) ++changes;
  }
  if (changes > 2 && block.index.x > m / 2) {
    for (std::int64_t i = 0; i < n; ++i) y[block.index.x * n + i] = 1.0f / static_cast<float>(n);
    return;
  }
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
