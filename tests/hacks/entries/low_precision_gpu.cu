// task: softmax_cuda
// hack: exponentials in half the width
// expect: FAIL wrong_result
// workload: small
#include "softmax.cuh"

#include <cuda_fp16.h>

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  const float top = largest(from, n);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += __half2float(hexp(__float2half(from[i] - top)));
  sum = join_all(sum, [](float a, float b) { return a + b; });
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = __half2float(hexp(__float2half(from[i] - top))) / sum;
}
