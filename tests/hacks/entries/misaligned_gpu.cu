// task: softmax_cuda
// hack: a vector store to an odd address
// expect: ERROR misaligned_address
// workload: small
// says: CUDA_ERROR_MISALIGNED_ADDRESS
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  *reinterpret_cast<volatile double*>(reinterpret_cast<char*>(y) + 4) = 1;
  (void)x;
}
