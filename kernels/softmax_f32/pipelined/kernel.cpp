// Softmax in two sweeps a row: exponentials, into y, with their sum; then y is scaled while the maximum
// of the next row is found. The next row comes from memory while this one keeps the core busy.
#include <hone/kernel.h>

#define UNROLLED _Pragma("GCC unroll 16")

namespace {

using i64 = std::int64_t;
constexpr int kWide = WIDE;   // floats a vector
using Vec = float __attribute__((vector_size(kWide * 4)));
using Ints = std::int32_t __attribute__((vector_size(kWide * 4)));

// Unaligned.
inline Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }
inline Vec all(float x) { return x - Vec{}; }
inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// The n < kWide numbers at p, then `fill`.
inline Vec load_some(const float* p, i64 n, float fill) {
  Vec v = all(fill);
  __builtin_memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(float));
  return v;
}

// exp(z) for z <= 0, to 1e-5 of itself: a tenth of what the task allows. Below -87 it stays at exp(-87).
// z = k ln 2 + r with |r| <= ln 2 / 2; exp(r) is a polynomial, 2^k is added to its exponent bits.
inline Vec exp_of(Vec z) {
  constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;
  constexpr float kRound = 12582912.0f;              // 1.5 * 2^23: adding it rounds to an integer
  z = larger(z, all(-87.0f));
  const Vec shifted = z * kLog2e + kRound;
  const Vec r = z - (shifted - kRound) * kLn2;
  Vec p = r * 0.0412773617f + 0.167536009f;
  p = p * r + 0.500051262f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return reinterpret_cast<Vec>(reinterpret_cast<Ints>(p) + (reinterpret_cast<Ints>(shifted) << 23));
}

inline float sum_of(Vec v) {
  float sum = 0;
  for (int lane = 0; lane < kWide; ++lane) sum += v[lane];
  return sum;
}
inline float largest_of(Vec v) {
  float best = v[0];
  for (int lane = 1; lane < kWide; ++lane) best = v[lane] > best ? v[lane] : best;
  return best;
}

constexpr float kLowest = -3.402823466e38f;

inline float maximum(const float* x, i64 n) {
  Vec best[4] = {all(kLowest), all(kLowest), all(kLowest), all(kLowest)};
  i64 i = 0;
  for (; i + 4 * kWide <= n; i += 4 * kWide)
    UNROLLED for (int s = 0; s < 4; ++s) best[s] = larger(load(x + i + s * kWide), best[s]);
  for (; i + kWide <= n; i += kWide) best[0] = larger(load(x + i), best[0]);
  if (i < n) best[0] = larger(load_some(x + i, n - i, kLowest), best[0]);
  return largest_of(larger(larger(best[0], best[1]), larger(best[2], best[3])));
}

// y[i] = exp(x[i] - largest); returns the sum.
inline float exponentials(const float* x, float* y, i64 n, float largest) {
  Vec sums[EXPS] = {};
  const Vec top = all(largest);
  i64 i = 0;
  for (; i + EXPS * kWide <= n; i += EXPS * kWide)
    UNROLLED for (int s = 0; s < EXPS; ++s) {
      const Vec v = exp_of(load(x + i + s * kWide) - top);
      store(y + i + s * kWide, v);
      sums[s] += v;
    }
  for (; i + kWide <= n; i += kWide) {
    const Vec v = exp_of(load(x + i) - top);
    store(y + i, v);
    sums[0] += v;
  }
  float rest = 0;
  if (i < n) {
    const Vec v = exp_of(load_some(x + i, n - i, largest) - top);
    for (i64 lane = 0; lane < n - i; ++lane) y[i + lane] = v[lane], rest += v[lane];
  }
  UNROLLED for (int s = 1; s < EXPS; ++s) sums[0] += sums[s];
  return sum_of(sums[0]) + rest;
}

// y *= scale; returns the maximum of `next`.
inline float scale_and_maximum(float* y, float scale, const float* next, i64 n) {
  const Vec scales = all(scale);
  Vec best[SCALES];
  UNROLLED for (Vec& each : best) each = all(kLowest);
  i64 i = 0;
  for (; i + SCALES * kWide <= n; i += SCALES * kWide)
    UNROLLED for (int s = 0; s < SCALES; ++s) {
      best[s] = larger(load(next + i + s * kWide), best[s]);
      store(y + i + s * kWide, load(y + i + s * kWide) * scales);
    }
  UNROLLED for (int s = 1; s < SCALES; ++s) best[0] = larger(best[0], best[s]);
  float largest = largest_of(best[0]);
  for (; i < n; ++i) {
    largest = next[i] > largest ? next[i] : largest;
    y[i] *= scale;
  }
  return largest;
}

}  // namespace

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n, std::int64_t rows) {
  const i64 first = block.index.x * rows, last = first + rows < m ? first + rows : m;
  float largest = maximum(x + first * n, n);
  for (i64 row = first; row < last; ++row) {
    const float sum = exponentials(x + row * n, y + row * n, n, largest);
    // After the last row there is no next one: its own maximum is as good.
    largest = scale_and_maximum(y + row * n, 1.0f / sum, x + (row + 1 < last ? row + 1 : row) * n, n);
  }
}
