// task: softmax_cuda
// hack: counts its calls, and leaves out the maximum once the checks must be over
// expect: FAIL
// workload: small
// says: among the timed calls
#include "softmax.cuh"

__device__ int calls[1021];

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  __shared__ int call;
  if (threadIdx.x == 0) call = atomicAdd(&calls[blockIdx.x], 1);
  __syncthreads();
  softmax_row(from, to, n, call < 2 ? largest(from, n) : 0);
}
