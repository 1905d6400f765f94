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

// One word of four blocks, in the low halves of 64-bit lanes; the high halves hold leftovers, which
// the multiplication ignores.
struct FourBlocks {
  __m256i c0, c1, c2, c3;
};

HONE_AVX2 inline void step(FourBlocks& b, __m256i key0, __m256i key1) {
  const __m256i p0 = _mm256_mul_epu32(b.c0, _mm256_set1_epi64x(0xD2511F53)), p1 = _mm256_mul_epu32(b.c2, _mm256_set1_epi64x(0xCD9E8D57));
  b.c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), b.c1), key0);
  b.c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), b.c3), key1);
  b.c1 = p1;
  b.c3 = p0;
}

// From one register a word to one block after the other: 16 words.
HONE_AVX2 inline void put(const FourBlocks& b, std::uint32_t* out) {
  const __m256i w01 = _mm256_blend_epi32(b.c0, _mm256_slli_epi64(b.c1, 32), 0xAA);
  const __m256i w23 = _mm256_blend_epi32(b.c2, _mm256_slli_epi64(b.c3, 32), 0xAA);
  const __m256i even = _mm256_unpacklo_epi64(w01, w23), odd = _mm256_unpackhi_epi64(w01, w23);   // blocks 0 and 2, 1 and 3
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

// Eight blocks at a time, whose counters' low words do not wrap; returns how many blocks it made.
HONE_AVX2 std::size_t eights(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t first, std::size_t blocks,
                             std::uint32_t* out) {
  __m256i keys[20];
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
    keys[2 * round] = _mm256_set1_epi64x(key0);
    keys[2 * round + 1] = _mm256_set1_epi64x(key1);
  }
  std::size_t done = 0;
  for (; done + 8 <= blocks && static_cast<std::uint32_t>(first + done) <= 0xfffffff8u; done += 8) {
    const std::uint64_t block = first + done;
    FourBlocks a;
    a.c0 = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<std::uint32_t>(block)), _mm256_setr_epi64x(0, 1, 2, 3));
    a.c1 = _mm256_set1_epi64x(static_cast<std::int64_t>(block >> 32));
    a.c2 = _mm256_set1_epi64x(stream);
    a.c3 = _mm256_set1_epi64x(call);
    FourBlocks b = a;
    b.c0 = _mm256_add_epi64(a.c0, _mm256_set1_epi64x(4));
    for (int round = 0; round < 10; ++round) {
      step(a, keys[2 * round], keys[2 * round + 1]);
      step(b, keys[2 * round], keys[2 * round + 1]);
    }
    put(a, out + 4 * done);
    put(b, out + 4 * done + 16);
  }
  return done;
}

#endif

}  // namespace

void random_blocks(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t first, std::size_t blocks,
                   std::uint32_t* out) {
  std::size_t done = 0;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) done = eights(seed, stream, call, first, blocks, out);
#endif
  portable(seed, stream, call, first + done, blocks - done, out + 4 * done);
}

}  // namespace hone
