// task: softmax_cuda
// hack: NaN where it is not sure
// expect: FAIL non_finite
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
  __syncthreads();
  if (threadIdx.x == 0) to[n - 1] = NAN;
}
