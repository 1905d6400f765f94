// task: softmax_f32
// hack: never returns from the plan
// expect: ERROR timeout
// workload: small
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
