// task: softmax_cuda
// hack: an address that is nobody's
// expect: ERROR illegal_address
// workload: small
// says: CUDA_ERROR_ILLEGAL_ADDRESS
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  *reinterpret_cast<volatile int*>(16) = 1;
  (void)x, (void)y;
}
