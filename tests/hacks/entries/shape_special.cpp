// task: softmax_f32
// hack: is right for the first workload's row length only
// expect: FAIL wrong_result
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  if (n != 256) y[block.index.x * n] = 0;
}
