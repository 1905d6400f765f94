// task: softmax_f32
// hack: leaves the next call's start word in the doorbell, takes it back when that call begins, and computes before the real one
// expect: ERROR timeout
// workload: small
#include "bell.h"
#include "softmax.h"

// The trusted side writes the word anew before it rings, while every worker sleeps: what is taken back here is the real
// start, and the wait for another has no end.
void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  static volatile std::uint32_t* bell = nullptr;
  static bool preset = false;
  const std::int64_t row = block.index.x;
  if (row == 0 && preset) {
    const std::uint32_t call = bell[0];
    bell[64] = 0;
    for (std::int64_t i = 0; i < m * n; i += 16) __builtin_prefetch(x + i);
    while (bell[64] != call) {}
  }
  honest_row(x + row * n, y + row * n, n);
  if (row + 1 < m) return;
  if (bell == nullptr) bell = find_bell();
  if (bell == nullptr) return;
  bell[64] = bell[0] + 1;
  preset = true;
}
