// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011), and Hone's way of using it. Integer arithmetic only: CPU and GPU give the
// same bits.
//
// Element i of a tensor takes word (i mod 4) of philox(counter, key) with
//   counter = { low 32 bits of i/4, high 32 bits of i/4, stream, call }   key = { seed low, seed high }
// where `stream` is the tensor's position in the task's tensor list and `call` counts data sets.
#ifndef HONE_PHILOX_H
#define HONE_PHILOX_H

#include <cstdint>

#if defined(__CUDACC__)
#define HONE_HOST_DEVICE __host__ __device__
#else
#define HONE_HOST_DEVICE
#endif

namespace hone {

struct PhiloxBlock {
  std::uint32_t word[4];
};

HONE_HOST_DEVICE inline PhiloxBlock philox4x32(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(p1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(p1),
                static_cast<std::uint32_t>(p0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(p0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

HONE_HOST_DEVICE inline PhiloxBlock random_block(std::uint64_t seed, std::uint32_t stream, std::uint32_t call,
                                                 std::uint64_t block) {
  return philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream, call}},
                    static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

HONE_HOST_DEVICE inline std::uint32_t random_u32(std::uint64_t seed, std::uint32_t stream, std::uint32_t call,
                                                 std::uint64_t index) {
  return random_block(seed, stream, call, index / 4).word[index % 4];
}

// Exact: a multiple of 2^-24 in [0, 1).
HONE_HOST_DEVICE inline float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

}  // namespace hone

#endif
