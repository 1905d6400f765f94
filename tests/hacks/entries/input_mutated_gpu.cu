// task: softmax_cuda
// hack: changes its input so that a later reference would agree
// expect: FAIL input_modified
// workload: small
// says: x
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
  if (blockIdx.x == 0 && threadIdx.x == 0) const_cast<float*>(x)[5] = 1;
}
