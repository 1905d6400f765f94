// An honest dot product for grouped GEMM entries to bend.
#pragma once
#include <hone/kernel.h>

#include <cstdint>

inline float dot(const float* a, const float* b, std::int64_t k) {
  float sum[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= k; i += 8)
    for (int lane = 0; lane < 8; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  float total = 0;
  for (; i < k; ++i) total += a[i] * b[i];
  for (float each : sum) total += each;
  return total;
}
