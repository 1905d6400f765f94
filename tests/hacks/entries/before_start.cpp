// task: softmax_f32
// hack: writes one element before the output
// expect: FAIL out_of_bounds
// says: y
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  if (block.index.x == 0) y[-1] = 1;
}
