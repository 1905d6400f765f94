// Grouped GEMM, D_g = A_g * B_g^T, float32, without packing B: B is much larger than A, is read from
// memory once, and most groups have few rows.
//   lanes  A's rows become vector lanes: A is transposed into scratch, and each element of B, read
//          where it lies, is broadcast against it. No sums across lanes.
//   dot    a few rows would leave lanes idle: vectors run along K, and are summed at the end.
// The next rows of B are prefetched while these are multiplied. A block is `bn` columns of a group.
#include <hone/kernel.h>

#define UNROLLED _Pragma("GCC unroll 64")

namespace {

using i64 = std::int64_t;
template <int N> struct VecOf {
  typedef float type __attribute__((vector_size(N * 4)));
};
template <int N> using Vec = typename VecOf<N>::type;
#ifdef __AVX512F__
constexpr int kWide = 16;
#else
constexpr int kWide = 8;
#endif

// Unaligned.
template <int N>
inline Vec<N> load(const float* p) {
  Vec<N> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <int N>
inline void store(float* p, Vec<N> v) { __builtin_memcpy(p, &v, sizeof v); }

inline void transpose4(Vec<4>& a, Vec<4>& b, Vec<4>& c, Vec<4>& d) {
  const Vec<4> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vec<4> cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(AB, CD, 0, 1, 4, 5), d = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

template <int L, int P>
inline Vec<4> quarter(Vec<L> v) { return __builtin_shufflevector(v, v, 4 * P, 4 * P + 1, 4 * P + 2, 4 * P + 3); }

// Stores a tile whose vector c holds column c of L rows, at most `rows` x `n` of it.
template <int L, int C, int P = 0>
inline void store_columns(const Vec<L>* acc, float* d, i64 ldd, i64 rows, int n) {
  UNROLLED for (int c = 0; c < C; c += 4) {
    const auto at = [&](int i) { return quarter<L, P>(acc[c + i < C ? c + i : C - 1]); };
    Vec<4> v[4] = {at(0), at(1), at(2), at(3)};
    transpose4(v[0], v[1], v[2], v[3]);
    UNROLLED for (int r = 0; r < 4; ++r) {
      if (P * 4 + r >= rows) break;
      float* out = d + (P * 4 + r) * ldd + c;
      if (c + 4 <= C && c + 4 <= n) store<4>(out, v[r]);
      else for (int i = 0; c + i < n && i < 4; ++i) out[i] = v[r][i];
    }
  }
  if constexpr (P + 1 < L / 4) store_columns<L, C, P + 1>(acc, d, ldd, rows, n);
}

// V vectors of L rows times C rows of B. `a` holds V panels of k x L. Prefetches `lines` cache lines at
// `ahead`, one every fourth step along k.
template <int L, int V, int C>
__attribute__((noinline)) void lanes_tile(const float* a, const float* b, i64 k, float* d, i64 ldd, i64 rows,
                                          int n, const float* ahead, i64 lines) {
  Vec<L> acc[V][C] = {};
  const float* row[C];
  UNROLLED for (int c = 0; c < C; ++c) row[c] = b + (c < n ? c : n - 1) * k;
  const auto step = [&](i64 i) __attribute__((always_inline)) {
    Vec<L> av[V];
    UNROLLED for (int v = 0; v < V; ++v) av[v] = load<L>(a + (i * V + v) * L);
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
    if (i < lines * 4) __builtin_prefetch(ahead + i * 4, 0, 2);
    step(i), step(i + 1), step(i + 2), step(i + 3);
  }
  for (; i < k; ++i) step(i);
  UNROLLED for (int v = 0; v < V; ++v) store_columns<L, C>(acc[v], d + v * L * ldd, ldd, rows - v * L, n);
}

// panel[i][r] = a[r][i] for r in [0, width); rows from m on repeat the last.
inline void pack_rows(const float* a, i64 m, i64 k, float* panel, i64 width) {
  for (i64 r0 = 0; r0 < width; r0 += 4) {
    const float* row[4];
    for (i64 r = 0; r < 4; ++r) row[r] = a + (r0 + r < m ? r0 + r : m - 1) * k;
    float* out = panel + r0;
    i64 i = 0;
    for (; i + 4 <= k; i += 4) {
      Vec<4> v[4] = {load<4>(row[0] + i), load<4>(row[1] + i), load<4>(row[2] + i), load<4>(row[3] + i)};
      transpose4(v[0], v[1], v[2], v[3]);
      UNROLLED for (int r = 0; r < 4; ++r) store<4>(out + (i + r) * width, v[r]);
    }
    for (; i < k; ++i)
      for (int r = 0; r < 4; ++r) out[i * width + r] = row[r][i];
  }
}

struct Columns {              // [begin, end) of one group's columns; all of its m rows
  const float *a, *b;
  float* d;
  i64 m, k, ldd, begin, end;
};

// Chunks of at most `chunk` rows, so that their panels stay in L2, and tiles of V vectors; both as even
// as they can be: with x.m > L and chunk >= 4 * L, a tile is V or V - 1 vectors (V <= 3).
template <int L, int V, int C>
void lanes(const Columns& x, i64 chunk, float* panels) {
  const i64 all = (x.m + L - 1) / L, chunks = (x.m + chunk - 1) / chunk;
  for (i64 part = 0; part < chunks; ++part) {
    const i64 v0 = all * part / chunks, vectors = all * (part + 1) / chunks - v0;
    const i64 m0 = v0 * L, m = x.m - m0, tiles = (vectors + V - 1) / V;
    for (i64 t = 0; t < tiles; ++t) {
      const i64 r = vectors * t / tiles * L, next = vectors * (t + 1) / tiles * L;
      pack_rows(x.a + (m0 + r) * x.k, m - r, x.k, panels + r * x.k, next - r);
    }
    const i64 lines = C * x.k / 16 / tiles + 1;
    for (i64 c = x.begin; c < x.end; c += C) {
      const int n = static_cast<int>(x.end - c < C ? x.end - c : C);
      const float* b = x.b + c * x.k;
      const float* ahead = b + C * x.k;
      for (i64 t = 0; t < tiles; ++t, ahead += lines * 16) {
        const i64 v = vectors * t / tiles, count = vectors * (t + 1) / tiles - v;    // V or V - 1
        const float* a = panels + v * L * x.k;
        float* d = x.d + (m0 + v * L) * x.ldd + c;
        if (count == V) lanes_tile<L, V, C>(a, b, x.k, d, x.ldd, m - v * L, n, ahead, lines);
        else if constexpr (V > 1) lanes_tile<L, V - 1, C>(a, b, x.k, d, x.ldd, m - v * L, n, ahead, lines);
      }
    }
  }
}

using Vec8 = Vec<8>;
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

// kTailMask[t + u ...] selects, of 16 floats, the last t.
alignas(64) constexpr int kTailMask[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                           -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
inline Vec<kWide> only(Vec<kWide> v, const int* mask) {
  using Bits = int __attribute__((vector_size(kWide * 4)));
  Bits bits, keep;
  __builtin_memcpy(&bits, &v, sizeof v);
  __builtin_memcpy(&keep, mask, sizeof keep);
  bits &= keep;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

// R rows of A times C rows of B along K; n <= C of the columns exist. Prefetches P rows of B at `ahead`.
template <int R, int C, int P>
__attribute__((noinline)) void dot_tile(const float* a, const float* b, i64 k, float* d, i64 ldd, int n,
                                        const float* ahead) {
  constexpr int kLine = 16, kSums = (R * C + 3) / 4 * 4;
  Vec<kWide> acc[kSums] = {};
  const float* row[C];
  UNROLLED for (int c = 0; c < C; ++c) row[c] = b + (c < n ? c : n - 1) * k;
  const auto step = [&](i64 at, auto&& keep) __attribute__((always_inline)) {
    UNROLLED for (int u = 0; u < kLine; u += kWide) {
      Vec<kWide> bv[C];
      UNROLLED for (int c = 0; c < C; ++c) bv[c] = load<kWide>(row[c] + at + u);
      UNROLLED for (int r = 0; r < R; ++r) {
        const Vec<kWide> av = keep(load<kWide>(a + r * k + at + u), u);
        UNROLLED for (int c = 0; c < C; ++c) acc[r * C + c] += av * bv[c];
      }
    }
  };
  i64 i = 0;
  for (; i + kLine <= k; i += kLine) {
    // Few rows never come back to B: keep it out of the outer caches.
    UNROLLED for (int p = 0; p < P; ++p) __builtin_prefetch(ahead + p * k + i, 0, 0);
    step(i, [](Vec<kWide> v, int) { return v; });
  }
  if (i < k && k >= kLine) {   // the last kLine of a row, without those that are summed already
    const int* mask = kTailMask + (k - i);
    step(k - kLine, [mask](Vec<kWide> v, int u) { return only(v, mask + u); });
    i = k;
  }
  float sums[kSums];
  UNROLLED for (int s = 0; s < kSums; s += 4)
    store<4>(sums + s, sum4(acc[s], acc[s + 1], acc[s + 2], acc[s + 3]));
  for (; i < k; ++i)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) sums[r * C + c] += a[r * k + i] * row[c][i];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < n; ++c) d[r * ldd + c] = sums[r * C + c];
}

template <int R, int C, int P>
inline void dot_rows(i64 rows, const float* a, const float* b, i64 k, float* d, i64 ldd, int n,
                     const float* ahead) {
  if (rows == R) return dot_tile<R, C, P>(a, b, k, d, ldd, n, ahead);
  if constexpr (R > 1) dot_rows<R - 1, C, P>(rows, a, b, k, d, ldd, n, ahead);
}

template <int R, int C>
void dot(const Columns& x) {
  const i64 tiles = (x.m + R - 1) / R;
  for (i64 c = x.begin; c < x.end; c += C) {
    const int n = static_cast<int>(x.end - c < C ? x.end - c : C);
    const float* b = x.b + c * x.k;
    const float* ahead = b + C * x.k;            // past the end of B a prefetch does nothing
    for (i64 t = 0; t < tiles; ++t) {
      const i64 r = x.m * t / tiles, rows = x.m * (t + 1) / tiles - r;
      const float* a = x.a + r * x.k;
      float* d = x.d + r * x.ldd + c;
      // The tiles share out the C rows to prefetch.
      if (tiles == 1) dot_rows<R, C, C>(rows, a, b, x.k, d, x.ldd, n, ahead);
      else if (tiles == 2) dot_rows<R, C, (C + 1) / 2>(rows, a, b, x.k, d, x.ldd, n, ahead + t * (C / 2) * x.k);
      else dot_rows<R, C, 1>(rows, a, b, x.k, d, x.ldd, n, ahead + (t < C ? t : C - 1) * x.k);
    }
  }
}

}  // namespace

void gemm(const hone::Block& block, const float* a, const float* b, const std::int32_t* starts,
          const std::int32_t* rows, float* d, std::int64_t n, std::int64_t k, std::int64_t ldd,
          std::int64_t bn, std::int64_t chunk) {
  const i64 g = block.index.y, begin = block.index.x * bn;
  const Columns x{a + starts[g] * k, b + g * n * k, d + starts[g] * ldd, rows[g], k, ldd,
                  begin, begin + bn < n ? begin + bn : n};
  if (x.m > kWide * 3 / 2) lanes<kWide, 3, 4>(x, chunk, static_cast<float*>(block.shared));
  else if (x.m > 0) dot<4, 3>(x);
}
