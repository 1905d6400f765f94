// What both kernels do with eight BF16 numbers and with sums of a row's parts.
#ifndef ROW_CUH
#define ROW_CUH
#include <hone/ptx.cuh>
#include <hone/types.h>

constexpr int kVector = 8;

// Element i of eight BF16 numbers as a float.
__device__ __forceinline__ float element(const unsigned (&words)[4], int i) {
  return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
}

// Of the eight elements, times `factor` and times those of `scales`.
__device__ __forceinline__ uint4 scaled(const unsigned (&words)[4], float factor, const unsigned (&scales)[4]) {
  unsigned out[4];
#pragma unroll
  for (int j = 0; j < 4; ++j)
    out[j] = hone::ptx::pack_bf16(element(words, 2 * j) * factor * element(scales, 2 * j),
                                  element(words, 2 * j + 1) * factor * element(scales, 2 * j + 1));
  return make_uint4(out[0], out[1], out[2], out[3]);
}

__device__ __forceinline__ float sum_warp(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

// The sum of `kParts` parts, in every lane.
template <int kParts>
__device__ __forceinline__ float sum_all(const float* parts, int lane) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < (kParts + 31) / 32; ++i)
    if (i * 32 + lane < kParts) sum += parts[i * 32 + lane];
  return sum_warp(sum);
}

__device__ __forceinline__ float factor_of(float sum, int n) { return 1.0f / sqrtf(sum / static_cast<float>(n) + 1e-6f); }

#endif
