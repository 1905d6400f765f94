// RMS normalisation with non-temporal stores: y is written once and not read again, so its lines need
// not be fetched first, which is a third of the memory traffic. Each row is read twice, the second
// time from cache.
#include <hone/kernel.h>

#include <cmath>

#define UNROLLED _Pragma("GCC unroll 16")

namespace {

using i64 = std::int64_t;
using hone::bf16;
#ifdef __AVX512F__
constexpr int kWide = 16;
#else
constexpr int kWide = 8;
#endif
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

// `p` is a multiple of the vector's size.
inline void stream(bf16* p, Bits v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, reinterpret_cast<Bits*>(p));
#elif defined(__AVX512F__)
  using Long = long long __attribute__((vector_size(64)));
  __builtin_ia32_movntdq512(reinterpret_cast<Long*>(p), reinterpret_cast<Long>(v));
#elif defined(__AVX__)
  using Long = long long __attribute__((vector_size(32)));
  __builtin_ia32_movntdq256(reinterpret_cast<Long*>(p), reinterpret_cast<Long>(v));
#else
  *reinterpret_cast<Bits*>(p) = v;
#endif
}

inline float sum_of_squares(const bf16* x, i64 n) {
  constexpr int kSums = 4;           // pairs of accumulators, to hide the latency of the additions
  Vec acc[2 * kSums] = {};
  i64 i = 0;
  for (; i + kSums * kBlock <= n; i += kSums * kBlock)
    UNROLLED for (int s = 0; s < kSums; ++s) {
      const Bits v = load(x + i + s * kBlock);
      acc[2 * s] += even(v) * even(v);
      acc[2 * s + 1] += odd(v) * odd(v);
    }
  Vec all = {};
  UNROLLED for (int s = 0; s < 2 * kSums; ++s) all += acc[s];
  float sum = 0;
  for (int lane = 0; lane < kWide; ++lane) sum += all[lane];
  for (; i < n; ++i) sum += hone::to_float(x[i]) * hone::to_float(x[i]);
  return sum;
}

}  // namespace

void rmsnorm(const hone::Block& block, const hone::bf16* x, const hone::bf16* w, hone::bf16* y, std::int64_t m,
             std::int64_t n, std::int64_t rows) {
  const i64 first = block.index.x * rows, last = first + rows < m ? first + rows : m;
  for (i64 row = first; row < last; ++row) {
    const bf16* const from = x + row * n;
    bf16* const to = y + row * n;
    const float factor = 1.0f / std::sqrt(sum_of_squares(from, n) / static_cast<float>(n) + 1e-6f);
    const Vec factors = Vec{} + factor;
    i64 i = 0;
    // A row's start lies anywhere: step to where vectors are aligned.
    for (; i < n && reinterpret_cast<std::uintptr_t>(to + i) % sizeof(Bits) != 0; ++i) to[i] = scaled(from[i], w[i], factor);
    for (; i + kBlock <= n; i += kBlock) {
      __builtin_prefetch(from + n + i, 0, 2);         // the next row; past the end of x this does nothing
      stream(to + i, scaled(load(from + i), load(w + i), factors));
    }
    for (; i < n; ++i) to[i] = scaled(from[i], w[i], factor);
  }
#if defined(__x86_64__)
  __builtin_ia32_sfence();           // before another core is told that y is there
#endif
}
