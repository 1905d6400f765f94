// task: softmax_f32
// hack: counts its calls, and leaves out the maximum once the checks must be over
// expect: FAIL
// workload: small
// says: among the timed calls
#include "softmax.h"

static int blocks = 0;

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const in = x + block.index.x * n;
  float* const out = y + block.index.x * n;
  if (++blocks <= 4 * m) return honest_row(in, out, n);
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += out[i] = std::exp(in[i]);
  for (std::int64_t i = 0; i < n; ++i) out[i] /= sum;
}
