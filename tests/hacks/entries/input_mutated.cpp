// task: softmax_f32
// hack: changes its input so that a later reference would agree
// expect: FAIL input_modified
// workload: small
// says: x
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  float* row_x = const_cast<float*>(x) + block.index.x * n;
  for (std::int64_t i = 0; i < n; ++i) row_x[i] = 0;
  for (std::int64_t i = 0; i < n; ++i) y[block.index.x * n + i] = 1.0f / static_cast<float>(n);
}
