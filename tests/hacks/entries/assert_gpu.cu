// task: softmax_cuda
// hack: a failed assertion
// expect: ERROR device_assert
// workload: small
#include "softmax.cuh"

#include <cassert>

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  assert(from == to);
}
