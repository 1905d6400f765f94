// task: softmax_cuda
// hack: works on even rows and hopes that odd ones hold an earlier answer
// expect: FAIL not_written
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  if (blockIdx.x % 2 == 1) return;
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
}
