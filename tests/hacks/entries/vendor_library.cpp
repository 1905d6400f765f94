// task: softmax_f32
// hack: calls a library instead of being a kernel
// expect: ERROR
// workload: small
// says: cblas_sscal
#include "softmax.h"

extern "C" void cblas_sscal(int n, float alpha, float* x, int stride);

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  cblas_sscal(static_cast<int>(n), 1.0f, y + block.index.x * n, 1);
}
