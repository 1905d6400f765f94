// task: softmax_cuda
// hack: writes one element past the output
// expect: FAIL out_of_bounds
// workload: small
// says: y
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
  if (blockIdx.x == 0 && threadIdx.x == 0) y[m * n] = 1;
}
