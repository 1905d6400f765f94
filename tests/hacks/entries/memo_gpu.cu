// task: softmax_cuda
// hack: keeps the first answer in a device global and gives it again
// expect: FAIL
// workload: small
#include "softmax.cuh"

__device__ float memo[1021 * 1003];
__device__ int filled[1021];

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  if (filled[blockIdx.x] == 0) {
    honest_row(from, to, n);
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) memo[blockIdx.x * n + i] = to[i];
    __syncthreads();
    if (threadIdx.x == 0) filled[blockIdx.x] = 1;
    return;
  }
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = memo[blockIdx.x * n + i];
}
