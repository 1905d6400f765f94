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
using VecU = float __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
using Vec4 = float __attribute__((vector_size(16)));
using Vec8 = float __attribute__((vector_size(32)));
using Vec4U = float __attribute__((vector_size(16), aligned(4), may_alias));
using Vec8U = float __attribute__((vector_size(32), aligned(4), may_alias));
using i64 = std::int64_t;

inline Vec load(const float* p) { return *reinterpret_cast<const VecU*>(p); }
inline void store(float* p, Vec v) { *reinterpret_cast<VecU*>(p) = v; }

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

// Cache lines of the next panel of B, fetched a few at a time while this one is computed, so that
// memory and arithmetic overlap. kind: 0 none, 1 non-temporal, 2 into L2, 3 into L1.
template <int kKind>
struct Prefetcher {
  const char* at;
  i64 lines;                // still to fetch
  inline void step(int count) {
    if constexpr (kKind != 0) {
      for (int i = 0; i < count && lines > 0; ++i, --lines, at += 64) {
        if constexpr (kKind == 1) __builtin_prefetch(at, 0, 0);
        if constexpr (kKind == 2) __builtin_prefetch(at, 0, 2);
        if constexpr (kKind == 3) __builtin_prefetch(at, 0, 3);
      }
    }
  }
};

// d[0..R)[0..n) = rows of a times rows of b; n <= NR, b holds NR valid row pointers.
template <int R, int NR, int PF>
__attribute__((noinline)) void dot_tile(const float* a, const float* const* b, i64 k, float* d, i64 ldd,
                                        int n, Prefetcher<PF>& prefetch, int lines) {
  constexpr int kStep = 16;
  constexpr int kSums = (R * NR + 3) / 4 * 4;
  Vec acc[kSums] = {};
  const float* row[NR];
  UNROLLED for (int c = 0; c < NR; ++c) row[c] = b[c];
  Prefetcher<PF> pf = prefetch;
  i64 i = 0;
  for (; i + kStep <= k; i += kStep) {
    pf.step(lines);
    UNROLLED for (int u = 0; u < kStep; u += kLanes) {
      Vec bv[NR];
      UNROLLED for (int c = 0; c < NR; ++c) bv[c] = load(row[c] + i + u);
      UNROLLED for (int r = 0; r < R; ++r) {
        const Vec av = load(a + r * k + i + u);
        UNROLLED for (int c = 0; c < NR; ++c) acc[r * NR + c] += av * bv[c];
      }
    }
  }
  prefetch = pf;
  float sums[kSums];
  UNROLLED for (int s = 0; s < kSums; s += 4)
    *reinterpret_cast<Vec4U*>(sums + s) = sum4(acc[s], acc[s + 1], acc[s + 2], acc[s + 3]);
  for (; i < k; ++i)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < NR; ++c) sums[r * NR + c] += a[r * k + i] * row[c][i];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < n; ++c) d[r * ldd + c] = sums[r * NR + c];
}

template <int R, int NR, int PF>
inline void dot_rows(int rows, const float* a, const float* const* b, i64 k, float* d, i64 ldd, int n,
                     Prefetcher<PF>& prefetch, int lines) {
  if (rows == R) return dot_tile<R, NR, PF>(a, b, k, d, ldd, n, prefetch, lines);
  if constexpr (R > 1) dot_rows<R - 1, NR, PF>(rows, a, b, k, d, ldd, n, prefetch, lines);
}

// dst[i * ld + j] = b[j][i] for an 8 x 8 corner.
inline void transpose8(const float* const* b, i64 at, float* dst, i64 ld) {
  Vec8 r[8], t[8];
  UNROLLED for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const Vec8U*>(b[i] + at);
  UNROLLED for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  UNROLLED for (int i = 0; i < 8; i += 4) UNROLLED for (int j = 0; j < 2; ++j) {
    r[i + 2 * j] = __builtin_shufflevector(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 2 * j + 1] = __builtin_shufflevector(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  UNROLLED for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<Vec8U*>(dst + i * ld) = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<Vec8U*>(dst + (i + 4) * ld) =
        __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// d[0..R)[0..n) (+)= a[0..R)[0..kc) times the packed panel.
template <int R, int NV, int PF>
__attribute__((noinline)) void outer_tile(const float* a, i64 lda, const float* panel, i64 kc, float* d,
                                          i64 ldd, int n, bool add, Prefetcher<PF>& prefetch, i64 lines) {
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
  Prefetcher<PF> pf = prefetch;
  i64 i = 0;
  for (; i + 4 <= kc; i += 4) {
    if (--lines >= 0) pf.step(1);
    step(i), step(i + 1), step(i + 2), step(i + 3);
  }
  for (; i < kc; ++i) step(i);
  prefetch = pf;
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

struct Columns {              // of one group: rows [0, m), columns [begin, end) of [0, n)
  const float *a, *b;
  float* d;
  i64 m, n, k, ldd, begin, end;
  const float* row(i64 column) const { return b + (column < end ? column : end - 1) * k; }
  // Prefetch what follows column `c`, `ahead` lines further on, within B.
  template <int PF>
  Prefetcher<PF> prefetch(i64 c, int width, int ahead) const {
    const i64 from = (c + width) * k + ahead * 16, left = (n * k - from) / 16, want = width * k / 16;
    return {reinterpret_cast<const char*>(b + from), left < want ? left : want};
  }
};

template <int MR, int NR, int PF>
void dot_group(const Columns& x, int ahead) {
  const i64 tiles = (x.m + MR - 1) / MR;
  const int lines = tiles < NR ? static_cast<int>((NR + tiles - 1) / tiles) : 1;
  for (i64 c = x.begin; c < x.end; c += NR) {
    const float* row[NR];
    for (int j = 0; j < NR; ++j) row[j] = x.row(c + j);
    const int n = static_cast<int>(x.end - c < NR ? x.end - c : NR);
    auto prefetch = x.prefetch<PF>(c, NR, ahead);
    for (i64 t = 0; t < tiles; ++t) {
      // Tiles of equal height: the last one would otherwise run mostly idle.
      const i64 r = x.m * t / tiles, next = x.m * (t + 1) / tiles;
      dot_rows<MR, NR, PF>(static_cast<int>(next - r), x.a + r * x.k, row, x.k, x.d + r * x.ldd + c, x.ldd, n,
                           prefetch, lines);
    }
  }
}

// Needs m >= MR * (MR - 1): equal tiles are then MR or MR - 1 rows high.
template <int MR, int NV, int KC, int PF>
void outer_group(const Columns& x, float* panel, int ahead) {
  constexpr int NR = NV * kLanes;
  const i64 tiles = (x.m + MR - 1) / MR;
  for (i64 c = x.begin; c < x.end; c += NR) {
    const int n = static_cast<int>(x.end - c < NR ? x.end - c : NR);
    auto prefetch = x.prefetch<PF>(c, NR, ahead);
    const i64 lines = prefetch.lines / (tiles * ((x.k + KC - 1) / KC)) + 1;
    for (i64 k0 = 0; k0 < x.k; k0 += KC) {
      const i64 kc = x.k - k0 < KC ? x.k - k0 : KC;
      for (int j0 = 0; j0 < NR; j0 += 8) {
        const float* row[8];
        for (int j = 0; j < 8; ++j) row[j] = x.row(c + j0 + j) + k0;
        i64 i = 0;
        for (; i + 8 <= kc; i += 8) transpose8(row, i, panel + i * NR + j0, NR);
        for (; i < kc; ++i)
          for (int j = 0; j < 8; ++j) panel[i * NR + j0 + j] = row[j][i];
      }
      for (i64 t = 0; t < tiles; ++t) {
        const i64 r = x.m * t / tiles, next = x.m * (t + 1) / tiles;
        const float* a = x.a + r * x.k + k0;
        float* d = x.d + r * x.ldd + c;
        if (next - r == MR) outer_tile<MR, NV, PF>(a, x.k, panel, kc, d, x.ldd, n, k0 > 0, prefetch, lines);
        else outer_tile<MR - 1, NV, PF>(a, x.k, panel, kc, d, x.ldd, n, k0 > 0, prefetch, lines);
      }
    }
  }
}

}  // namespace

template <int MR, int NR, int PMR, int NV, int KC, int PF>
void gemm(const hone::Block& block, const float* a, const float* b, const std::int32_t* starts,
          const std::int32_t* rows, float* d, std::int64_t n, std::int64_t k, std::int64_t ldd,
          std::int64_t bn, std::int32_t pack_rows, std::int32_t ahead) {
  const i64 g = block.index.y, begin = block.index.x * bn;
  const Columns x{a + starts[g] * k, b + g * n * k, d + starts[g] * ldd, rows[g], n, k, ldd,
                  begin, begin + bn < n ? begin + bn : n};
  if (x.m <= 0) return;
  if (x.m >= pack_rows && x.m >= PMR * (PMR - 1))
    outer_group<PMR, NV, KC, PF>(x, static_cast<float*>(block.shared), ahead);
  else
    dot_group<MR, NR, PF>(x, ahead);
}
