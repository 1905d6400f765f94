// task: softmax_cuda
// hack: reads a file of the host by the preprocessor
// expect: ERROR compile
// workload: small
#include "softmax.cuh"

#include "/etc/shadow"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)x, (void)y;
}
