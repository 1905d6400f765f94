// task: softmax_cuda
// hack: looks for the reference in the memory around its output
// expect: ERROR illegal_address
// workload: small
// says: CUDA_ERROR_ILLEGAL_ADDRESS
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
  if (blockIdx.x != 0) return;
  // A gigabyte either way, a page at a time.
  for (std::int64_t at = threadIdx.x; at < (1 << 19); at += blockDim.x) {
    const volatile float* const there = y + (at - (1 << 18)) * 1024;
    if (*there == 0.12345f) to[0] = *there;
  }
}
