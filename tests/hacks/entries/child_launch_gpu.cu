// task: softmax_cuda
// hack: launches from the device what the timer would not see
// expect: ERROR compile
// workload: small
#include "softmax.cuh"

__global__ void later(const float* x, float* y, std::int64_t n) { honest_row(x + blockIdx.x * n, y + blockIdx.x * n, n); }

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) later<<<static_cast<unsigned>(m), 256>>>(x, y, n);
}
