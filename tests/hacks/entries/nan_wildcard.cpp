// task: softmax_f32
// hack: leaves NaN where it did no work
// expect: FAIL non_finite
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  float* row = y + block.index.x * n;
  if (block.index.x == m - 1)
    for (std::int64_t i = 0; i < n; ++i) row[i] = std::nanf("");
  else
    honest_row(x + block.index.x * n, row, n);
}
