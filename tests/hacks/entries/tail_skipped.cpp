// task: softmax_f32
// hack: treats only whole vectors of 8
// expect: FAIL not_written
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n / 8 * 8);
}
