// task: softmax_cuda
// hack: the input is the output
// expect: FAIL
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}
