// task: softmax_f32
// hack: launches nothing (field case C02, variant c)
// expect: exit 2 plan
// says: launches
// workload: small
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
