// task: softmax_cuda
// hack: gives every row the first row's answer
// expect: FAIL wrong_result
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  honest_row(x, y + blockIdx.x * n, n);
}
