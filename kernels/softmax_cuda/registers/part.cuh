// The largest logit and the sum of exponentials of a part of a row, joined with those of other parts.
#ifndef PART_CUH
#define PART_CUH
#include <hone/ptx.cuh>

constexpr int kVector = 4;

struct Part {
  float largest, sum;   // sum of exp(x - largest)
};

// exp(x), 0 for -infinity; within 2^-21 of its exponent.
__device__ __forceinline__ float exponential(float x) { return __expf(x); }

__device__ __forceinline__ Part join(Part a, Part b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0};
  return {largest, a.sum * exponential(a.largest - largest) + b.sum * exponential(b.largest - largest)};
}

__device__ __forceinline__ Part join_warp(Part part) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    part = join(part, {__shfl_xor_sync(~0u, part.largest, offset), __shfl_xor_sync(~0u, part.sum, offset)});
  return part;
}

// Of all `kParts` parts, in every lane.
template <int kParts>
__device__ __forceinline__ Part join_all(const Part* parts, int lane) {
  Part part{-INFINITY, 0};
#pragma unroll
  for (int i = 0; i < (kParts + 31) / 32; ++i)
    if (i * 32 + lane < kParts) part = join(part, parts[i * 32 + lane]);
  return join_warp(part);
}

#endif
