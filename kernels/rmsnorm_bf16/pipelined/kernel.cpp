// RMS normalisation in one sweep: while a row is scaled and stored, the squares of the next row are
// summed. Reading, arithmetic and writing overlap, and each row comes from memory once.
#include <hone/kernel.h>

#include <cmath>

#define UNROLLED _Pragma("GCC unroll 16")

namespace {

using i64 = std::int64_t;
using hone::bf16;
constexpr int kWide = WIDE;         // floats a vector
constexpr int kBlock = 2 * kWide;   // BF16 numbers a vector
using Vec = float __attribute__((vector_size(kWide * 4)));
using Bits = std::uint32_t __attribute__((vector_size(kWide * 4)));

// Unaligned.
inline Bits load(const bf16* p) {
  Bits v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// The even and the odd numbers of a vector as float32: two operations and no shuffle.
inline Vec even(Bits v) { return reinterpret_cast<Vec>(v << 16); }
inline Vec odd(Bits v) { return reinterpret_cast<Vec>(v & 0xffff0000u); }

// The reverse, rounding to nearest even. A NaN stays one: its low half is zero here.
inline Bits join(Vec even, Vec odd) {
  const auto rounded = [](Vec v) {
    const Bits bits = reinterpret_cast<Bits>(v);
    return bits + 0x7fffu + ((bits >> 16) & 1u);
  };
  return (rounded(even) >> 16) | (rounded(odd) & 0xffff0000u);
}

inline Bits scaled(Bits x, Bits w, Vec factor) {
  return join(even(x) * factor * even(w), odd(x) * factor * odd(w));
}
inline bf16 scaled(bf16 x, bf16 w, float factor) {
  return hone::to_bf16(hone::to_float(x) * factor * hone::to_float(w));
}

inline void store(bf16* p, Bits v) { __builtin_memcpy(p, &v, sizeof v); }

inline void add_squares(Bits v, Vec& evens, Vec& odds) {
  evens += even(v) * even(v);
  odds += odd(v) * odd(v);
}

// y = x * factor * w over n numbers when kScale; returns the sum of next's squares when kNext.
template <bool kScale, bool kNext>
float sweep(const bf16* x, const bf16* w, bf16* y, float factor, const bf16* next, i64 n) {
  constexpr int kAtOnce = AT_ONCE;   // vectors a step
  const Vec factors = Vec{} + factor;
  Vec acc[2 * kAtOnce] = {};
  i64 i = 0;
  for (; i + kAtOnce * kBlock <= n; i += kAtOnce * kBlock)
    UNROLLED for (int s = 0; s < kAtOnce; ++s) {
      const i64 at = i + s * kBlock;
      if constexpr (kNext) add_squares(load(next + at), acc[2 * s], acc[2 * s + 1]);
      if constexpr (kScale) store(y + at, scaled(load(x + at), load(w + at), factors));
    }
  Vec all = {};
  UNROLLED for (int s = 0; s < 2 * kAtOnce; ++s) all += acc[s];
  float sum = 0;
  for (int lane = 0; lane < kWide; ++lane) sum += all[lane];
  for (; i < n; ++i) {
    if constexpr (kNext) sum += hone::to_float(next[i]) * hone::to_float(next[i]);
    if constexpr (kScale) y[i] = scaled(x[i], w[i], factor);
  }
  return sum;
}

}  // namespace

void rmsnorm(const hone::Block& block, const hone::bf16* x, const hone::bf16* w, hone::bf16* y, std::int64_t m,
             std::int64_t n, std::int64_t rows) {
  const i64 first = block.index.x * rows, last = first + rows < m ? first + rows : m;
  float squares = sweep<false, true>(nullptr, nullptr, nullptr, 0, x + first * n, n);
  for (i64 row = first; row < last; ++row) {
    const float factor = 1.0f / std::sqrt(squares / static_cast<float>(n) + 1e-6f);
    const bf16* const from = x + row * n;
    bf16* const to = y + row * n;
    if (row + 1 < last) squares = sweep<true, true>(from, w, to, factor, from + n, n);
    else sweep<true, false>(from, w, to, factor, nullptr, n);
  }
}
