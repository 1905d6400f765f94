#include "contract/philox_fill.h"

#include "hone/philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hone {
namespace {

void portable(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t first, std::size_t blocks,
              std::uint32_t* out) {
  for (std::size_t i = 0; i < blocks; ++i) {
    const PhiloxBlock block = random_block(seed, stream, call, first + i);
    for (std::size_t k = 0; k < 4; ++k) out[4 * i + k] = block.word[k];
  }
}

#if defined(__x86_64__)

#define HONE_AVX2 __attribute__((target("avx2")))

HONE_AVX2 inline __m256i splat(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }

// 32x32 -> 64 bit products of eight lanes, as their high and low halves.
HONE_AVX2 inline void multiply(__m256i a, __m256i factor, __m256i& high, __m256i& low) {
  const __m256i even = _mm256_mul_epu32(a, factor);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}

// Eight blocks whose counters' low words do not wrap; lane l is block first + l.
HONE_AVX2 void eight(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t first, std::uint32_t* out) {
  __m256i c0 = _mm256_add_epi32(splat(static_cast<std::uint32_t>(first)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i c1 = splat(static_cast<std::uint32_t>(first >> 32)), c2 = splat(stream), c3 = splat(call);
  const __m256i m0 = splat(0xD2511F53u), m1 = splat(0xCD9E8D57u);
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    __m256i high0, low0, high1, low1;
    multiply(c0, m0, high0, low0);
    multiply(c2, m1, high1, low1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c1), splat(key0));
    c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c3), splat(key1));
    c1 = low1;
    c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  // From one register a word to one block after the other.
  const __m256i a = _mm256_unpacklo_epi32(c0, c1), b = _mm256_unpackhi_epi32(c0, c1);
  const __m256i c = _mm256_unpacklo_epi32(c2, c3), d = _mm256_unpackhi_epi32(c2, c3);
  const __m256i b04 = _mm256_unpacklo_epi64(a, c), b15 = _mm256_unpackhi_epi64(a, c);
  const __m256i b26 = _mm256_unpacklo_epi64(b, d), b37 = _mm256_unpackhi_epi64(b, d);
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(b04, b15, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(b26, b37, 0x20));
  _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(b04, b15, 0x31));
  _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(b26, b37, 0x31));
}

#endif

}  // namespace

void random_blocks(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t first, std::size_t blocks,
                   std::uint32_t* out) {
  std::size_t done = 0;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  while (has_avx2 && done + 8 <= blocks && static_cast<std::uint32_t>(first + done) <= 0xfffffff8u) {
    eight(seed, stream, call, first + done, out + 4 * done);
    done += 8;
  }
#endif
  portable(seed, stream, call, first + done, blocks - done, out + 4 * done);
}

}  // namespace hone
