// One block a row, two passes over it.
#include <cuda_bf16.h>

__global__ void rmsnorm(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int n) {
  __shared__ float shared[32];
  const __nv_bfloat16* const from = x + static_cast<long long>(blockIdx.x) * n;
  __nv_bfloat16* const to = y + static_cast<long long>(blockIdx.x) * n;
  float sum = 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    const float value = __bfloat162float(from[j]);
    sum += value * value;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) sum += shared[i];
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(n) + 1e-6f);
  for (int j = threadIdx.x; j < n; j += blockDim.x)
    to[j] = __float2bfloat16(__bfloat162float(from[j]) * factor * __bfloat162float(w[j]));
}
