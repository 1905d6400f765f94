// task: softmax_cuda
// hack: takes the same address for the same data, whose answer would lie in the output still
// expect: FAIL not_written
// workload: small
#include "softmax.cuh"

__device__ const float* last[1021];

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  if (last[blockIdx.x] != x) honest_row(from, to, n);
  __syncthreads();
  if (threadIdx.x == 0) last[blockIdx.x] = x;
}
