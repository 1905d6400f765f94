// task: softmax_f32
// hack: writes one element past the output
// expect: FAIL out_of_bounds
// says: y
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  if (block.index.x == m - 1) y[m * n] = 1;
}
