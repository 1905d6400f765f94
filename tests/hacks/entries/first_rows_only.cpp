// task: softmax_f32
// hack: leaves the last row out
// expect: FAIL not_written
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  if (block.index.x == m - 1) return;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
