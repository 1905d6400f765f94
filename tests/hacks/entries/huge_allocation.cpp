// task: softmax_f32
// hack: asks for 100 GB at once
// expect: ERROR out_of_memory
// workload: small
#include "softmax.h"

#include <new>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  char* volatile big = new char[100'000'000'000];
  big[0] = 1;
  delete[] big;
}
