// Grouped GEMM, D_g = A_g * B_g^T, float32. Two forms, chosen for each group by its row count:
//   dot   few rows: A and B are both contiguous along K, so B is read once, unpacked; a tile of
//         MR x NR vector accumulators runs along K and is summed across lanes at the end.
//   outer many rows: NV vectors of columns of B are transposed into scratch, KC deep, and an
//         outer-product tile of PMR rows uses them again and again.
// A block is `bn` columns of one group.
#include <hone/kernel.h>

#define UNROLLED _Pragma("GCC unroll 64")

namespace {

#ifdef __AVX512F__
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
using Vec = float __attribute__((vector_size(kLanes * 4)));
using Vec4 = float __attribute__((vector_size(16)));
using Vec8 = float __attribute__((vector_size(32)));
using i64 = std::int64_t;

// Unaligned.
template <class V = Vec>
inline V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
inline void store(float* p, V v) { __builtin_memcpy(p, &v, sizeof v); }

inline Vec8 halve(Vec v) {
#ifdef __AVX512F__
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  return v;
#endif
}

// The lane sums of four vectors.
inline Vec4 sum4(Vec va, Vec vb, Vec vc, Vec vd) {
  const Vec8 a = halve(va), b = halve(vb), c = halve(vc), d = halve(vd);
  const Vec8 ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
                  __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  const Vec8 cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13) +
                  __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
  const Vec8 s = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
                 __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
  return __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
}

// Where a prefetch goes. A panel of the dot form fits in L1; one of the outer form only in L2.
enum Hint { kNone, kNonTemporal, kL2, kL1 };

template <int kHint>
inline void prefetch(const void* line) {
  if constexpr (kHint == kNonTemporal) __builtin_prefetch(line, 0, 0);
  if constexpr (kHint == kL2) __builtin_prefetch(line, 0, 2);
  if constexpr (kHint == kL1) __builtin_prefetch(line, 0, 3);
}

// kTailMask[t + u ...] selects, of 16 floats, the last t.
alignas(64) constexpr int kTailMask[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                           -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
inline Vec only(Vec v, const int* mask) {
  using Bits = int __attribute__((vector_size(kLanes * 4)));
  Bits bits, keep;
  __builtin_memcpy(&bits, &v, sizeof v);
  __builtin_memcpy(&keep, mask, sizeof keep);
  bits &= keep;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

// d[0..R)[0..n) = rows of a times rows of b; n <= NR, row j of b is `b + min(j, n - 1) * k`. Meanwhile
// prefetches the P rows of length k at `ahead`.
template <int R, int NR, int P, int HINT>
__attribute__((noinline)) void dot_tile(const float* a, const float* b, i64 k, float* d, i64 ldd, int n,
                                        const float* ahead) {
  constexpr int kStep = 16;                      // floats a cache line
  constexpr int kSums = (R * NR + 3) / 4 * 4;
  Vec acc[kSums] = {};
  const float* row[NR];
  UNROLLED for (int c = 0; c < NR; ++c) row[c] = b + (c < n ? c : n - 1) * k;
  const auto step = [&](i64 at, auto&& keep) __attribute__((always_inline)) {
    UNROLLED for (int u = 0; u < kStep; u += kLanes) {
      Vec bv[NR];
      UNROLLED for (int c = 0; c < NR; ++c) bv[c] = load(row[c] + at + u);
      UNROLLED for (int r = 0; r < R; ++r) {
        const Vec av = keep(load(a + r * k + at + u), u);
        UNROLLED for (int c = 0; c < NR; ++c) acc[r * NR + c] += av * bv[c];
      }
    }
  };
  i64 i = 0;
  for (; i + kStep <= k; i += kStep) {
    UNROLLED for (int p = 0; p < P; ++p) prefetch<HINT>(ahead + p * k + i);
    step(i, [](Vec v, int) { return v; });
  }
  if (i < k && k >= kStep) {   // the last kStep of a row, without those that are summed already
    const int* mask = kTailMask + (k - i);
    step(k - kStep, [mask](Vec v, int u) { return only(v, mask + u); });
    i = k;
  }
  float sums[kSums];
  UNROLLED for (int s = 0; s < kSums; s += 4)
    store(sums + s, sum4(acc[s], acc[s + 1], acc[s + 2], acc[s + 3]));
  for (; i < k; ++i)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < NR; ++c) sums[r * NR + c] += a[r * k + i] * row[c][i];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < n; ++c) d[r * ldd + c] = sums[r * NR + c];
}

template <int R, int NR, int P, int HINT>
inline void dot_rows(i64 rows, const float* a, const float* b, i64 k, float* d, i64 ldd, int n,
                     const float* ahead) {
  if (rows == R) return dot_tile<R, NR, P, HINT>(a, b, k, d, ldd, n, ahead);
  if constexpr (R > 1) dot_rows<R - 1, NR, P, HINT>(rows, a, b, k, d, ldd, n, ahead);
}

// dst[i * ld + j] = b[j][i] for an 8 x 8 corner.
inline void transpose8(const float* const* b, i64 at, float* dst, i64 ld) {
  Vec8 r[8], t[8];
  UNROLLED for (int i = 0; i < 8; ++i) r[i] = load<Vec8>(b[i] + at);
  UNROLLED for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  UNROLLED for (int i = 0; i < 8; i += 4) UNROLLED for (int j = 0; j < 2; ++j) {
    r[i + 2 * j] = __builtin_shufflevector(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 2 * j + 1] = __builtin_shufflevector(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  UNROLLED for (int i = 0; i < 4; ++i) {
    store(dst + i * ld, __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    store(dst + (i + 4) * ld, __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

// d[0..R)[0..n) (+)= a[0..R)[0..kc) times the packed panel. Meanwhile prefetches `lines` cache lines
// at `ahead`, at most kc / 4 of them.
template <int R, int NV, int HINT>
__attribute__((noinline)) void outer_tile(const float* a, i64 lda, const float* panel, i64 kc, float* d,
                                          i64 ldd, int n, bool add, const float* ahead, i64 lines) {
  constexpr int NR = NV * kLanes;
  Vec acc[R][NV] = {};
  const auto step = [&](i64 i) __attribute__((always_inline)) {
    Vec bv[NV];
    UNROLLED for (int v = 0; v < NV; ++v) bv[v] = load(panel + i * NR + v * kLanes);
    UNROLLED for (int r = 0; r < R; ++r) {
      const float s = a[r * lda + i];
      UNROLLED for (int v = 0; v < NV; ++v) acc[r][v] += s * bv[v];
    }
  };
  i64 i = 0;
  for (; i + 4 <= kc; i += 4) {
    if (i < lines * 4) prefetch<HINT>(ahead + i * 4);
    step(i), step(i + 1), step(i + 2), step(i + 3);
  }
  for (; i < kc; ++i) step(i);
  UNROLLED for (int r = 0; r < R; ++r) {
    float* out = d + r * ldd;
    if (n == NR) {
      UNROLLED for (int v = 0; v < NV; ++v)
        store(out + v * kLanes, add ? load(out + v * kLanes) + acc[r][v] : acc[r][v]);
    } else {
      float t[NR];
      UNROLLED for (int v = 0; v < NV; ++v) store(t + v * kLanes, acc[r][v]);
      for (int c = 0; c < n; ++c) out[c] = add ? out[c] + t[c] : t[c];
    }
  }
}

struct Columns {              // [begin, end) of one group's n columns; all of its m rows
  const float *a, *b;
  float* d;
  i64 m, k, ldd, begin, end;
};

template <int MR, int NR, int HINT>
void dot_group(const Columns& x, i64 distance) {
  const i64 tiles = (x.m + MR - 1) / MR;
  for (i64 c = x.begin; c < x.end; c += NR) {
    const int n = static_cast<int>(x.end - c < NR ? x.end - c : NR);
    const float* b = x.b + c * x.k;
    const float* ahead = b + NR * x.k + distance;
    for (i64 t = 0; t < tiles; ++t) {
      // Tiles of equal height: the last one would otherwise run mostly idle.
      const i64 r = x.m * t / tiles, rows = x.m * (t + 1) / tiles - r;
      const float* a = x.a + r * x.k;
      float* d = x.d + r * x.ldd + c;
      // The tiles share the prefetch of the next panel's NR rows evenly. Prefetching past the end of
      // B is harmless.
      if (tiles == 1) {
        dot_rows<MR, NR, NR, HINT>(rows, a, b, x.k, d, x.ldd, n, ahead);
      } else if (tiles == 2) {
        dot_rows<MR, NR, (NR + 1) / 2, HINT>(rows, a, b, x.k, d, x.ldd, n, ahead + t * (NR / 2) * x.k);
      } else {
        dot_rows<MR, NR, 1, HINT>(rows, a, b, x.k, d, x.ldd, n, ahead + (t < NR ? t : NR - 1) * x.k);
      }
    }
  }
}

// Needs m >= MR * (MR - 1): equal tiles are then MR or MR - 1 rows high.
template <int MR, int NV, int KC, int HINT>
void outer_group(const Columns& x, float* panel) {
  constexpr int NR = NV * kLanes;
  const i64 tiles = (x.m + MR - 1) / MR;
  const i64 lines = NR * x.k / 16 / (tiles * ((x.k + KC - 1) / KC)) + 1;   // to prefetch in each tile
  for (i64 c = x.begin; c < x.end; c += NR) {
    const int n = static_cast<int>(x.end - c < NR ? x.end - c : NR);
    const float* b = x.b + c * x.k;
    const float* ahead = b + NR * x.k;
    for (i64 k0 = 0; k0 < x.k; k0 += KC) {
      const i64 kc = x.k - k0 < KC ? x.k - k0 : KC;
      for (int j0 = 0; j0 < NR; j0 += 8) {
        const float* row[8];
        for (int j = 0; j < 8; ++j) row[j] = b + (j0 + j < n ? j0 + j : n - 1) * x.k + k0;
        i64 i = 0;
        for (; i + 8 <= kc; i += 8) transpose8(row, i, panel + i * NR + j0, NR);
        for (; i < kc; ++i)
          for (int j = 0; j < 8; ++j) panel[i * NR + j0 + j] = row[j][i];
      }
      for (i64 t = 0; t < tiles; ++t, ahead += lines * 16) {
        const i64 r = x.m * t / tiles, rows = x.m * (t + 1) / tiles - r;
        const float* a = x.a + r * x.k + k0;
        float* d = x.d + r * x.ldd + c;
        if (rows == MR) outer_tile<MR, NV, HINT>(a, x.k, panel, kc, d, x.ldd, n, k0 > 0, ahead, lines);
        else outer_tile<MR - 1, NV, HINT>(a, x.k, panel, kc, d, x.ldd, n, k0 > 0, ahead, lines);
      }
    }
  }
}

}  // namespace

template <int MR, int NR, int DOT_HINT, int PMR, int NV, int KC, int OUTER_HINT>
void gemm(const hone::Block& block, const float* a, const float* b, const std::int32_t* starts,
          const std::int32_t* rows, float* d, std::int64_t n, std::int64_t k, std::int64_t ldd,
          std::int64_t bn, std::int64_t pack_rows, std::int64_t distance) {
  const i64 g = block.index.y, begin = block.index.x * bn;
  const Columns x{a + starts[g] * k, b + g * n * k, d + starts[g] * ldd, rows[g], k, ldd,
                  begin, begin + bn < n ? begin + bn : n};
  if (x.m >= pack_rows && x.m >= PMR * (PMR - 1))
    outer_group<PMR, NV, KC, OUTER_HINT>(x, static_cast<float*>(block.shared));
  else if (x.m > 0)
    dot_group<MR, NR, DOT_HINT>(x, distance);
}
