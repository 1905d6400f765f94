// One block a row, three passes over it.
__device__ float reduce_max(float value, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  for (unsigned i = 0; i < blockDim.x / 32; ++i) value = fmaxf(value, shared[i]);
  __syncthreads();
  return value;
}

__device__ float reduce_sum(float value, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) value += shared[i];
  __syncthreads();
  return value;
}

__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float shared[32];
  const float* const from = x + static_cast<long long>(blockIdx.x) * n;
  float* const to = y + static_cast<long long>(blockIdx.x) * n;
  float largest = -INFINITY, sum = 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x) largest = fmaxf(largest, from[j]);
  largest = reduce_max(largest, shared);
  for (int j = threadIdx.x; j < n; j += blockDim.x) sum += expf(from[j] - largest);
  sum = reduce_sum(sum, shared);
  for (int j = threadIdx.x; j < n; j += blockDim.x) to[j] = expf(from[j] - largest) / sum;
}
