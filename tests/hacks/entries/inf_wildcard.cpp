// task: softmax_f32
// hack: leaves one infinity
// expect: FAIL non_finite
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  float* row = y + block.index.x * n;
  honest_row(x + block.index.x * n, row, n);
  if (block.index.x == m - 1) row[n - 1] = INFINITY;
}
