// task: softmax_f32
// hack: drops the maximum: right on tame data, overflows on large scales
// expect: FAIL non_finite
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  const float* row_x = x + block.index.x * n;
  float* row = y + block.index.x * n;
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row_x[i]);
  for (std::int64_t i = 0; i < n; ++i) row[i] /= sum;
}
