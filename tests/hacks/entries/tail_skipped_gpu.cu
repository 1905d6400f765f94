// task: softmax_cuda
// hack: works in fours and forgets the tail
// expect: FAIL not_written
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n / 4 * 4);
}
