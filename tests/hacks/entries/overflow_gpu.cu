// task: softmax_cuda
// hack: no maximum is taken off
// expect: FAIL
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  softmax_row(from, to, n, 0);
}
