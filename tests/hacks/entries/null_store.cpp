// task: softmax_f32
// hack: stores through a null pointer
// expect: ERROR crash
// workload: small
// says: SIGSEGV
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  *reinterpret_cast<volatile float*>(block.index.x * 0) = 1;
}
