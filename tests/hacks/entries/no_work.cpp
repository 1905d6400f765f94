// task: softmax_f32
// hack: returns at once
// expect: FAIL not_written
// says: not written
#include "softmax.h"

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) { (void)block, (void)x, (void)y, (void)m, (void)n; }
