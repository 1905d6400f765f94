// task: softmax_f32
// hack: takes all memory
// expect: ERROR out_of_memory
// workload: small
#include "softmax.h"

#include <cstdlib>
#include <cstring>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  for (;;) std::memset(std::malloc(64 << 20), 1, 64 << 20);
}
