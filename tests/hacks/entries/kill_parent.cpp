// task: softmax_f32
// hack: kills whatever it can
// expect: ERROR forbidden
// workload: small
// says: kill
#include "softmax.h"

#include <signal.h>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  ::kill(-1, SIGKILL);
}
