// task: softmax_f32
// hack: starts a worker while it is loaded, which computes after the call has returned
// expect: ERROR forbidden
// workload: small
#include "softmax.h"

#include <atomic>
#include <thread>

static std::atomic<const float*> from{nullptr};
static std::atomic<float*> to{nullptr};
static std::int64_t rows, columns;
static std::thread worker([] {
  for (;;)
    if (const float* x = from.exchange(nullptr))
      for (std::int64_t i = 0; i < rows; ++i) honest_row(x + i * columns, to.load() + i * columns, columns);
});

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  if (block.index.x != 0) return;
  rows = m, columns = n;
  to = y;
  from = x;
}
