// task: softmax_f32
// hack: works on even rows and hopes that odd ones hold an earlier answer
// expect: FAIL not_written
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  if (block.index.x % 2 == 1) return;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
