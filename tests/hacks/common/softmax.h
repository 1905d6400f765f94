// An honest row softmax for entries to bend.
#pragma once
#include <hone/kernel.h>

#include <cmath>
#include <cstdint>

inline void honest_row(const float* x, float* y, std::int64_t n) {
  float top = x[0];
  for (std::int64_t i = 1; i < n; ++i) top = x[i] > top ? x[i] : top;
  // Several partial sums: one float32 sum of tens of thousands of equal terms drifts past the gate.
  float part[16] = {};
  for (std::int64_t i = 0; i < n; ++i) part[i % 16] += y[i] = std::exp(x[i] - top);
  float sum = 0;
  for (float each : part) sum += each;
  for (std::int64_t i = 0; i < n; ++i) y[i] /= sum;
}
