// An honest row softmax for entries to bend: one block of 256 threads a row.
#pragma once
#include <cstdint>

template <class Join>
__device__ float join_all(float value, Join join) {
  __shared__ float shared[256];
  __syncthreads();
  shared[threadIdx.x] = value;
  for (unsigned half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  return shared[0];
}

__device__ inline float largest(const float* x, std::int64_t n) {
  float top = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, x[i]);
  return join_all(top, [](float a, float b) { return fmaxf(a, b); });
}

// With any number taken off: honest is the largest.
__device__ inline void softmax_row(const float* x, float* y, std::int64_t n, float off) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - off);
  sum = join_all(sum, [](float a, float b) { return a + b; });
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - off) / sum;
}

__device__ inline void honest_row(const float* x, float* y, std::int64_t n) { softmax_row(x, y, n, largest(x, n)); }
