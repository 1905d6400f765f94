// Softmax in three passes over a row: its maximum; exponentials, into scratch, with their sum; the
// scaled result, by non-temporal stores, because y is not read again and its lines need not be fetched.
#include <hone/kernel.h>

#define UNROLLED _Pragma("GCC unroll 16")

namespace {

using i64 = std::int64_t;
#ifdef __AVX512F__
constexpr int kWide = 16;
#else
constexpr int kWide = 8;
#endif
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

// `p` is a multiple of the vector's size.
inline void stream(float* p, Vec v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, reinterpret_cast<Vec*>(p));
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512(p, v);
#elif defined(__AVX__)
  __builtin_ia32_movntps256(p, v);
#else
  *reinterpret_cast<Vec*>(p) = v;
#endif
}

inline float maximum(const float* x, i64 n) {
  Vec best[4] = {all(kLowest), all(kLowest), all(kLowest), all(kLowest)};
  i64 i = 0;
  for (; i + 4 * kWide <= n; i += 4 * kWide)
    UNROLLED for (int s = 0; s < 4; ++s) best[s] = larger(load(x + i + s * kWide), best[s]);
  for (; i + kWide <= n; i += kWide) best[0] = larger(load(x + i), best[0]);
  if (i < n) best[0] = larger(load_some(x + i, n - i, kLowest), best[0]);
  return largest_of(larger(larger(best[0], best[1]), larger(best[2], best[3])));
}

// e[i] = exp(x[i] - largest); returns the sum. e has room for whole vectors. Prefetches the next row
// meanwhile; past the end of x that does nothing.
inline float exponentials(const float* x, float* e, i64 n, float largest) {
  Vec sums[4] = {};
  const Vec top = all(largest);
  i64 i = 0;
  for (; i + 4 * kWide <= n; i += 4 * kWide)
    UNROLLED for (int s = 0; s < 4; ++s) {
      if (s * kWide % 16 == 0) __builtin_prefetch(x + n + i + s * kWide, 0, 2);
      const Vec v = exp_of(load(x + i + s * kWide) - top);
      store(e + i + s * kWide, v);
      sums[s] += v;
    }
  for (; i + kWide <= n; i += kWide) {
    const Vec v = exp_of(load(x + i) - top);
    store(e + i, v);
    sums[0] += v;
  }
  float rest = 0;
  if (i < n) {
    const Vec v = exp_of(load_some(x + i, n - i, largest) - top);
    store(e + i, v);
    for (i64 lane = 0; lane < n - i; ++lane) rest += v[lane];
  }
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

}  // namespace

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n, std::int64_t rows) {
  const i64 first = block.index.x * rows, last = first + rows < m ? first + rows : m;
  float* const e = static_cast<float*>(block.shared);
  for (i64 row = first; row < last; ++row) {
    const float* const from = x + row * n;
    float* const to = y + row * n;
    const float scale = 1.0f / exponentials(from, e, n, maximum(from, n));
    const Vec scales = all(scale);
    i64 i = 0;
    // A row's start lies anywhere: step to where vectors are aligned.
    for (; i < n && reinterpret_cast<std::uintptr_t>(to + i) % sizeof(Vec) != 0; ++i) to[i] = e[i] * scale;
    for (; i + kWide <= n; i += kWide) stream(to + i, load(e + i) * scales);
    for (; i < n; ++i) to[i] = e[i] * scale;
  }
#if defined(__x86_64__)
  __builtin_ia32_sfence();           // before another core is told that y is there
#endif
}
