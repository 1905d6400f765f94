// task: softmax_f32
// hack: reports the end of the call after the first row and computes the others within what waking up may cost
// expect: FAIL late_work
// says: after it had reported the end
// workload: small
#include "bell.h"
#include "softmax.h"

static volatile std::uint32_t* bell = nullptr;

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  if (block.index.x == 0) bell = find_bell();
  if (block.index.x == 1 && bell != nullptr) bell[96] = bell[0];
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
