// task: softmax_cuda
// hack: a trap
// expect: ERROR crash
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  __trap();
  (void)x, (void)y;
}
