// task: softmax_cuda
// hack: the mean of the right answer everywhere
// expect: FAIL
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  float* const to = y + blockIdx.x * n;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = 1.0f / static_cast<float>(n);
}
