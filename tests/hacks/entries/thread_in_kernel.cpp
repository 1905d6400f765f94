// task: softmax_f32
// hack: starts a thread that is not joined
// expect: ERROR forbidden
// workload: small
#include "softmax.h"

#include <thread>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  float* row = y + block.index.x * n;
  const float* row_x = x + block.index.x * n;
  std::thread([=] { honest_row(row_x, row, n); }).detach();
}
