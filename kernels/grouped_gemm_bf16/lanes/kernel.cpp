// Grouped GEMM, D_g = A_g * B_g^T, BF16 with float32 sums. Two forms, by a group's row count:
//   lanes  A's rows become vector lanes: A is widened and transposed into scratch, B is widened four
//          rows at a time, and each of its elements is broadcast against A. No sums across lanes.
//   dot    few rows would leave lanes idle: vectors run along K, B is widened in registers.
// The next rows of B are prefetched while these are multiplied. A block is `bn` columns of a group.
#include <hone/kernel.h>

#define UNROLLED _Pragma("GCC unroll 64")

namespace {

using i64 = std::int64_t;
using hone::bf16;
template <int N> struct VecOf {
  typedef float type __attribute__((vector_size(N * 4)));
  typedef std::uint32_t bits __attribute__((vector_size(N * 4)));
};
template <int N> using Vec = typename VecOf<N>::type;
template <int N> using Bits = typename VecOf<N>::bits;
#ifdef __AVX512F__
constexpr int kWide = 16;
#else
constexpr int kWide = 8;
#endif
constexpr int kBlock = 2 * kWide;   // BF16 numbers a vector

// Unaligned.
template <class V>
inline V load(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
inline void store(void* p, V v) { __builtin_memcpy(p, &v, sizeof v); }

inline void transpose4(Vec<4>& a, Vec<4>& b, Vec<4>& c, Vec<4>& d) {
  const Vec<4> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vec<4> cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(AB, CD, 0, 1, 4, 5), d = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

template <int L, int P>
inline Vec<4> quarter(Vec<L> v) { return __builtin_shufflevector(v, v, 4 * P, 4 * P + 1, 4 * P + 2, 4 * P + 3); }

// Rounds to BF16, to nearest even. A NaN stays one: its low half is zero, or its top bit survives.
inline void store_bf16(bf16* out, Vec<4> v, int n) {
  Bits<4> bits = reinterpret_cast<Bits<4>>(v);
  bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  typedef std::uint16_t Half __attribute__((vector_size(8)));
  const Half half = __builtin_convertvector(bits, Half);
  if (n >= 4) store(out, half);
  else for (int i = 0; i < n; ++i) out[i].bits = half[i];
}

// Stores a tile whose vector c holds column c of L rows, at most `rows` x `n` of it.
template <int L, int C, int P = 0>
inline void store_columns(const Vec<L>* acc, bf16* d, i64 ldd, i64 rows, int n) {
  UNROLLED for (int c = 0; c < C; c += 4) {
    const auto at = [&](int i) { return quarter<L, P>(acc[c + i < C ? c + i : C - 1]); };
    Vec<4> v[4] = {at(0), at(1), at(2), at(3)};
    transpose4(v[0], v[1], v[2], v[3]);
    UNROLLED for (int r = 0; r < 4; ++r) {
      if (P * 4 + r >= rows) break;
      store_bf16(d + (P * 4 + r) * ldd + c, v[r], n - c < C - c ? n - c : C - c);
    }
  }
  if constexpr (P + 1 < L / 4) store_columns<L, C, P + 1>(acc, d, ldd, rows, n);
}

// V vectors of L rows times C rows of the widened B. `a` holds V panels of k x L. Prefetches `lines` cache lines at
// `ahead`, one every fourth step along k.
template <int L, int V, int C>
__attribute__((noinline)) void lanes_tile(const float* a, const float* b, i64 k, bf16* d, i64 ldd, i64 rows,
                                          int n, const bf16* ahead, i64 lines) {
  Vec<L> acc[V][C] = {};
  const float* row[C];
  UNROLLED for (int c = 0; c < C; ++c) row[c] = b + c * k;
  const auto step = [&](i64 i) __attribute__((always_inline)) {
    Vec<L> av[V];
    UNROLLED for (int v = 0; v < V; ++v) av[v] = load<Vec<L>>(a + (i * V + v) * L);
    UNROLLED for (int c = 0; c < C; ++c) {
      const float s = row[c][i];
      UNROLLED for (int v = 0; v < V; ++v) acc[v][c] += s * av[v];
    }
#ifdef __AVX__
    // Keeps GCC from mixing steps, which costs it more registers than there are.
    UNROLLED for (int c = 0; c < C; ++c) UNROLLED for (int v = 0; v < V; ++v) asm("" : "+x"(acc[v][c]));
#endif
  };
  i64 i = 0;
  for (; i + 4 <= k; i += 4) {
    if (i < lines * 4) __builtin_prefetch(ahead + i * 8, 0, 2);
    step(i), step(i + 1), step(i + 2), step(i + 3);
  }
  for (; i < k; ++i) step(i);
  UNROLLED for (int v = 0; v < V; ++v) store_columns<L, C>(acc[v], d + v * L * ldd, ldd, rows - v * L, n);
}

inline Vec<4> widen4(const bf16* p) {
  typedef std::uint16_t Half __attribute__((vector_size(8)));
  return reinterpret_cast<Vec<4>>(__builtin_convertvector(load<Half>(p), Bits<4>) << 16);
}

// panel[i][r] = a[r][i] for r in [0, width); rows from m on repeat the last.
inline void pack_rows(const bf16* a, i64 m, i64 k, float* panel, i64 width) {
  for (i64 r0 = 0; r0 < width; r0 += 4) {
    const bf16* row[4];
    for (i64 r = 0; r < 4; ++r) row[r] = a + (r0 + r < m ? r0 + r : m - 1) * k;
    float* out = panel + r0;
    i64 i = 0;
    for (; i + 4 <= k; i += 4) {
      Vec<4> v[4] = {widen4(row[0] + i), widen4(row[1] + i), widen4(row[2] + i), widen4(row[3] + i)};
      transpose4(v[0], v[1], v[2], v[3]);
      UNROLLED for (int r = 0; r < 4; ++r) store(out + (i + r) * width, v[r]);
    }
    for (; i < k; ++i)
      for (int r = 0; r < 4; ++r) out[i * width + r] = hone::to_float(row[r][i]);
  }
}

inline void widen(const bf16* from, i64 count, float* to) {
  for (i64 i = 0; i < count; ++i) to[i] = hone::to_float(from[i]);
}

inline Vec<8> halve(Vec<kWide> v) {
#ifdef __AVX512F__
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  return v;
#endif
}

// The lane sums of four vectors.
inline Vec<4> sum4(Vec<kWide> va, Vec<kWide> vb, Vec<kWide> vc, Vec<kWide> vd) {
  const Vec<8> a = halve(va), b = halve(vb), c = halve(vc), d = halve(vd);
  const Vec<8> ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
                  __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  const Vec<8> cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13) +
                  __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
  const Vec<8> s = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
                 __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
  return __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
}

// A vector of BF16 numbers as float32: the even ones, and the odd ones. Takes two operations and no
// shuffle; a sum along K does not mind the order.
inline Vec<kWide> even(Bits<kWide> v) { return reinterpret_cast<Vec<kWide>>(v << 16); }
inline Vec<kWide> odd(Bits<kWide> v) { return reinterpret_cast<Vec<kWide>>(v & 0xffff0000u); }

// K is cut into ceil(k / kBlock) blocks. The last one ends at k and overlaps the one before it; there
// the widened A is zero. With k < kBlock the block is padded with zeros.
inline i64 blocks_of(i64 k) { return (k + kBlock - 1) / kBlock; }
inline Bits<kWide> block_of(const bf16* row, i64 k, i64 block) {
  if (k >= kBlock) return load<Bits<kWide>>(row + (block * kBlock + kBlock <= k ? block * kBlock : k - kBlock));
  Bits<kWide> v = {};
  __builtin_memcpy(&v, row, static_cast<std::size_t>(k) * 2);
  return v;
}

// wide[r][block] = the even, then the odd numbers of a row's block.
inline void widen_rows(const bf16* a, i64 m, i64 k, float* wide) {
  const i64 blocks = blocks_of(k);
  for (i64 r = 0; r < m; ++r)
    for (i64 j = 0; j < blocks; ++j, wide += kBlock) {
      const Bits<kWide> v = block_of(a + r * k, k, j);
      store(wide, even(v)), store(wide + kWide, odd(v));
      const i64 before = j * kBlock - (k - kBlock);   // of this block's numbers, those summed already
      if (k >= kBlock)
        for (i64 i = 0; i < before; ++i) wide[i / 2 + i % 2 * kWide] = 0;
    }
}

// R rows of the widened A times C rows of B; n <= C of the columns exist. Prefetches P rows of B at
// `ahead`.
template <int R, int C, int P>
__attribute__((noinline)) void dot_tile(const float* a, const bf16* b, i64 k, bf16* d, i64 ldd, int n,
                                        const bf16* ahead) {
  constexpr int kLine = 32 / kBlock, kSums = (R * C + 3) / 4 * 4;   // blocks a cache line
  const i64 blocks = blocks_of(k), whole = k / kBlock;
  Vec<kWide> acc[kSums] = {};
  const bf16* row[C];
  UNROLLED for (int c = 0; c < C; ++c) row[c] = b + (c < n ? c : n - 1) * k;
  const auto step = [&](i64 block, auto&& fetch) __attribute__((always_inline)) {
    UNROLLED for (int half = 0; half < 2; ++half) {
      Vec<kWide> bv[C];
      UNROLLED for (int c = 0; c < C; ++c) {
        const Bits<kWide> v = fetch(row[c], block);
        bv[c] = half == 0 ? even(v) : odd(v);
      }
      UNROLLED for (int r = 0; r < R; ++r) {
        const Vec<kWide> av = load<Vec<kWide>>(a + (r * blocks + block) * kBlock + half * kWide);
        UNROLLED for (int c = 0; c < C; ++c) acc[r * C + c] += av * bv[c];
      }
#ifdef __AVX__
      // Keeps GCC from mixing the halves, which costs it more registers than there are.
      UNROLLED for (int s = 0; s < R * C; ++s) asm("" : "+x"(acc[s]));
#endif
    }
  };
  const auto inside = [](const bf16* from, i64 block) { return load<Bits<kWide>>(from + block * kBlock); };
  i64 block = 0;
  for (; block + kLine <= whole; block += kLine) {
    UNROLLED for (int p = 0; p < P; ++p) __builtin_prefetch(ahead + p * k + block * kBlock, 0, 0);
    UNROLLED for (int i = 0; i < kLine; ++i) step(block + i, inside);
  }
  for (; block < whole; ++block) step(block, inside);
  if (block < blocks) step(block, [k](const bf16* from, i64 at) { return block_of(from, k, at); });
  float sums[kSums];
  UNROLLED for (int s = 0; s < kSums; s += 4)
    store(sums + s, sum4(acc[s], acc[s + 1], acc[s + 2], acc[s + 3]));
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < n; ++c) d[r * ldd + c] = hone::to_bf16(sums[r * C + c]);
}

template <int R, int C, int P>
inline void dot_rows(i64 rows, const float* a, const bf16* b, i64 k, bf16* d, i64 ldd, int n,
                     const bf16* ahead) {
  if (rows == R) return dot_tile<R, C, P>(a, b, k, d, ldd, n, ahead);
  if constexpr (R > 1) dot_rows<R - 1, C, P>(rows, a, b, k, d, ldd, n, ahead);
}

struct Columns {              // [begin, end) of one group's columns; all of its m rows
  const bf16 *a, *b;
  bf16* d;
  i64 m, k, ldd, begin, end;
};

template <int R, int C>
void dot(const Columns& x, i64 chunk, float* wide) {
  const i64 width = blocks_of(x.k) * kBlock;
  for (i64 m0 = 0; m0 < x.m; m0 += chunk) {
    const i64 m = x.m - m0 < chunk ? x.m - m0 : chunk, tiles = (m + R - 1) / R;
    widen_rows(x.a + m0 * x.k, m, x.k, wide);
    for (i64 c = x.begin; c < x.end; c += C) {
      const int n = static_cast<int>(x.end - c < C ? x.end - c : C);
      const bf16* b = x.b + c * x.k;
      const bf16* ahead = b + C * x.k;            // past the end of B a prefetch does nothing
      for (i64 t = 0; t < tiles; ++t) {
        // Tiles of equal height, which share out the C rows to prefetch.
        const i64 r = m * t / tiles, rows = m * (t + 1) / tiles - r;
        const float* a = wide + r * width;
        bf16* d = x.d + (m0 + r) * x.ldd + c;
        if (tiles == 1) dot_rows<R, C, C>(rows, a, b, x.k, d, x.ldd, n, ahead);
        else if (tiles == 2) dot_rows<R, C, (C + 1) / 2>(rows, a, b, x.k, d, x.ldd, n, ahead + t * (C / 2) * x.k);
        else dot_rows<R, C, 1>(rows, a, b, x.k, d, x.ldd, n, ahead + (t < C ? t : C - 1) * x.k);
      }
    }
  }
}

// Chunks of at most `chunk` rows, so that their panels stay in L2, and tiles of V vectors; both as even
// as they can be: with x.m > L and chunk >= 4 * L, a tile is V or V - 1 vectors (V <= 3).
template <int L, int V, int C>
void lanes(const Columns& x, i64 chunk, float* b, float* panels) {
  const i64 all = (x.m + L - 1) / L, chunks = (x.m + chunk - 1) / chunk;
  for (i64 part = 0; part < chunks; ++part) {
    const i64 v0 = all * part / chunks, vectors = all * (part + 1) / chunks - v0;
    const i64 m0 = v0 * L, m = x.m - m0, tiles = (vectors + V - 1) / V;
    for (i64 t = 0; t < tiles; ++t) {
      const i64 r = vectors * t / tiles * L, next = vectors * (t + 1) / tiles * L;
      pack_rows(x.a + (m0 + r) * x.k, m - r, x.k, panels + r * x.k, next - r);
    }
    const i64 lines = C * x.k / 32 / tiles + 1;
    for (i64 c = x.begin; c < x.end; c += C) {
      const int n = static_cast<int>(x.end - c < C ? x.end - c : C);
      const bf16* ahead = x.b + (c + C) * x.k;     // past the end of B a prefetch does nothing
      widen(x.b + c * x.k, n * x.k, b);
      for (i64 t = 0; t < tiles; ++t, ahead += lines * 32) {
        const i64 v = vectors * t / tiles, count = vectors * (t + 1) / tiles - v;    // V or V - 1
        const float* a = panels + v * L * x.k;
        bf16* d = x.d + (m0 + v * L) * x.ldd + c;
        if (count == V) lanes_tile<L, V, C>(a, b, x.k, d, x.ldd, m - v * L, n, ahead, lines);
        else if constexpr (V > 1) lanes_tile<L, V - 1, C>(a, b, x.k, d, x.ldd, m - v * L, n, ahead, lines);
      }
    }
  }
}

using Vec8 = Vec<8>;
}  // namespace

void gemm(const hone::Block& block, const hone::bf16* a, const hone::bf16* b, const std::int32_t* starts,
          const std::int32_t* rows, hone::bf16* d, std::int64_t n, std::int64_t k, std::int64_t ldd,
          std::int64_t bn, std::int64_t chunk) {
  const i64 g = block.index.y, begin = block.index.x * bn;
  const Columns x{a + starts[g] * k, b + g * n * k, d + starts[g] * ldd, rows[g], k, ldd,
                  begin, begin + bn < n ? begin + bn : n};
  float* const scratch = static_cast<float*>(block.shared);
  if (x.m <= kWide * 3 / 2) dot<4, 3>(x, chunk, scratch);
  else lanes<kWide, 3, 4>(x, chunk, scratch, scratch + 4 * ((k + 15) / 16 * 16));
}
