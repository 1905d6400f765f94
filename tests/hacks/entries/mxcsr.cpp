// task: softmax_f32
// hack: leaves denormals flushed for whoever runs next in the process
// expect: PASS
#include "softmax.h"

// Allowed for a float32 softmax (its gate is absolute near zero), but it must stay inside the
// candidate's own runner: the test judges an honest twin right after it.
#include <immintrin.h>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  _mm_setcsr(_mm_getcsr() | 0x8040);
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
