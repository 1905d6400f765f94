// task: softmax_f32
// hack: prints without end
// expect: ERROR output_limit
// workload: small
#include "softmax.h"

#include <unistd.h>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  static char text[1 << 20];
  for (;;)
    if (::write(1, text, sizeof text) < 0) return;
}
