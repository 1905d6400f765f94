// task: softmax_f32
// hack: overflows the stack
// expect: ERROR crash
// workload: small
#include "softmax.h"

static int deeper(volatile char* above, int depth) {
  volatile char here[65536];
  here[0] = above[0];
  return depth > 1 << 20 ? here[0] : deeper(here, depth + 1) + here[0];
}

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  volatile char top[1] = {1};
  y[0] = static_cast<float>(deeper(top, 0));
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
