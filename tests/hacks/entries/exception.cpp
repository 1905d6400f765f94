// task: softmax_f32
// hack: throws
// expect: ERROR crash
// workload: small
// says: no luck
// says: "line": 13
#include "softmax.h"

#include <stdexcept>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)block, (void)x, (void)y, (void)m, (void)n;
  throw std::runtime_error("no luck");
}
