// task: softmax_cuda
// hack: writes nothing
// expect: FAIL not_written
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)x, (void)y;
}
