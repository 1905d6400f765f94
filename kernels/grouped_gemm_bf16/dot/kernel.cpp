// Grouped GEMM, D_g = A_g * B_g^T, BF16 with float32 sums. A and B are both contiguous along K: B is
// read where it lies and widened in registers, A is widened into scratch once. A tile of 4 x 3 vector
// accumulators runs along K and is summed across lanes at the end; the next rows of B are prefetched
// meanwhile. With many rows, B is widened into scratch too, three rows at a time. A block is `bn`
// columns of a group.
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

struct Yes { static constexpr bool value = true; };
struct No { static constexpr bool value = false; };

// K is cut into ceil(k / kBlock) blocks. The last one ends at k and overlaps the one before it; there
// the widened A is zero. With k < kBlock the block is padded with zeros.
inline i64 blocks_of(i64 k) { return (k + kBlock - 1) / kBlock; }
inline Bits<kWide> block_of(const bf16* row, i64 k, i64 block) {
  if (k >= kBlock) return load<Bits<kWide>>(row + (block * kBlock + kBlock <= k ? block * kBlock : k - kBlock));
  Bits<kWide> v = {};
  __builtin_memcpy(&v, row, static_cast<std::size_t>(k) * 2);
  return v;
}

// wide[r][block] = the even, then the odd numbers of a row's block. Rows are B's, or A's.
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

// C rows of B, n of which exist: as they are, or as widen_rows leaves them. fetch: the even (half 0) or
// odd (half 1) numbers of block `at` of row c.
template <int C>
struct Narrow {
  const bf16* row[C];
  i64 k;
  Narrow(const bf16* b, i64 k_, int n) : k(k_) { UNROLLED for (int c = 0; c < C; ++c) row[c] = b + (c < n ? c : n - 1) * k_; }
  template <bool kInside>
  Vec<kWide> fetch(int c, i64 at, int half) const {
    const Bits<kWide> v = kInside ? load<Bits<kWide>>(row[c] + at * kBlock) : block_of(row[c], k, at);
    return half == 0 ? even(v) : odd(v);
  }
};
template <int C>
struct Wide {
  const float* b;
  i64 width;
  template <bool kInside>
  Vec<kWide> fetch(int c, i64 at, int half) const {
    return load<Vec<kWide>>(b + c * width + at * kBlock + half * kWide);
  }
};

// R rows of the widened A times C rows of B, n of which are stored. Prefetches P rows of B at `ahead`.
template <int R, int C, int P, class B>
__attribute__((noinline)) void dot_tile(const float* a, B b, i64 k, bf16* d, i64 ldd, int n, const bf16* ahead) {
  constexpr int kLine = 32 / kBlock, kSums = (R * C + 3) / 4 * 4;   // blocks a cache line
  const i64 blocks = blocks_of(k), whole = k / kBlock;
  Vec<kWide> acc[kSums] = {};
  const auto step = [&](i64 block, auto inside) __attribute__((always_inline)) {
    UNROLLED for (int half = 0; half < 2; ++half) {
      Vec<kWide> bv[C];
      UNROLLED for (int c = 0; c < C; ++c) bv[c] = b.template fetch<inside.value>(c, block, half);
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
  i64 block = 0;
  for (; block + kLine <= whole; block += kLine) {
    UNROLLED for (int p = 0; p < P; ++p) __builtin_prefetch(ahead + p * k + block * kBlock, 0, 0);
    UNROLLED for (int i = 0; i < kLine; ++i) step(block + i, Yes{});
  }
  for (; block < whole; ++block) step(block, Yes{});
  if (block < blocks) step(block, No{});
  float sums[kSums];
  UNROLLED for (int s = 0; s < kSums; s += 4)
    store(sums + s, sum4(acc[s], acc[s + 1], acc[s + 2], acc[s + 3]));
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < n; ++c) d[r * ldd + c] = hone::to_bf16(sums[r * C + c]);
}

template <int R, int C, int P, class B>
inline void dot_rows(i64 rows, const float* a, B b, i64 k, bf16* d, i64 ldd, int n, const bf16* ahead) {
  if (rows == R) return dot_tile<R, C, P>(a, b, k, d, ldd, n, ahead);
  if constexpr (R > 1) dot_rows<R - 1, C, P>(rows, a, b, k, d, ldd, n, ahead);
}

struct Columns {              // [begin, end) of one group's columns; all of its m rows
  const bf16 *a, *b;
  bf16* d;
  i64 m, k, ldd, begin, end;
};

template <int R, int C>
void dot(const Columns& x, i64 chunk, float* wide_b, float* wide_a) {
  const i64 width = blocks_of(x.k) * kBlock;
  for (i64 m0 = 0; m0 < x.m; m0 += chunk) {
    const i64 m = x.m - m0 < chunk ? x.m - m0 : chunk, tiles = (m + R - 1) / R;
    widen_rows(x.a + m0 * x.k, m, x.k, wide_a);
    for (i64 c = x.begin; c < x.end; c += C) {
      const int n = static_cast<int>(x.end - c < C ? x.end - c : C);
      const Narrow<C> b(x.b + c * x.k, x.k, n);
      const bf16* ahead = x.b + (c + C) * x.k;     // past the end of B a prefetch does nothing
      if (tiles > 3) widen_rows(x.b + c * x.k, n, x.k, wide_b);
      for (i64 t = 0; t < tiles; ++t) {
        // Tiles of equal height, which share out the C rows to prefetch.
        const i64 r = m * t / tiles, rows = m * (t + 1) / tiles - r;
        const float* a = wide_a + r * width;
        bf16* d = x.d + (m0 + r) * x.ldd + c;
        const bf16* mine = ahead + (t < C ? t : C - 1) * x.k;
        if (tiles > 3) dot_rows<R, C, 1>(rows, a, Wide<C>{wide_b, width}, x.k, d, x.ldd, n, mine);
        else if (tiles == 3) dot_rows<R, C, 1>(rows, a, b, x.k, d, x.ldd, n, mine);
        else if (tiles == 2) dot_rows<R, C, (C + 1) / 2>(rows, a, b, x.k, d, x.ldd, n, ahead + t * (C / 2) * x.k);
        else dot_rows<R, C, C>(rows, a, b, x.k, d, x.ldd, n, ahead);
      }
    }
  }
}

}  // namespace

void gemm(const hone::Block& block, const hone::bf16* a, const hone::bf16* b, const std::int32_t* starts,
          const std::int32_t* rows, hone::bf16* d, std::int64_t n, std::int64_t k, std::int64_t ldd,
          std::int64_t bn, std::int64_t chunk) {
  const i64 g = block.index.y, begin = block.index.x * bn;
  const Columns x{a + starts[g] * k, b + g * n * k, d + starts[g] * ldd, rows[g], k, ldd,
                  begin, begin + bn < n ? begin + bn : n};
  float* const scratch = static_cast<float*>(block.shared);
  dot<4, 3>(x, chunk, scratch, scratch + 3 * blocks_of(k) * kBlock);
}
