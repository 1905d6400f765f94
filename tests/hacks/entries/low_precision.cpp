// task: softmax_f32
// hack: computes in half the mantissa
// expect: FAIL wrong_result
#include "softmax.h"

static float cut(float value) { return hone::to_float(hone::to_bf16(value)); }

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  const float* row_x = x + block.index.x * n;
  float* row = y + block.index.x * n;
  float top = row_x[0];
  for (std::int64_t i = 1; i < n; ++i) top = row_x[i] > top ? row_x[i] : top;
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += row[i] = cut(std::exp(cut(row_x[i] - top)));
  for (std::int64_t i = 0; i < n; ++i) row[i] = cut(row[i] / sum);
}
