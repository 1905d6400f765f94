// task: softmax_f32
// hack: copies the input
// expect: FAIL wrong_result
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  for (std::int64_t i = 0; i < n; ++i) y[block.index.x * n + i] = x[block.index.x * n + i];
}
