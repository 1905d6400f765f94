// task: softmax_cuda
// hack: runs code of its own on the host before main
// expect: PASS
// workload: small
#include "softmax.cuh"

#include <cstdlib>
// Only device code is kept: nothing of this runs.
static const int before_main = (std::abort(), 1);

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
}
