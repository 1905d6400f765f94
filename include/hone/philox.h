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
#include <cstring>

#include <hone/host_device.h>

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

// The distributions of a contract's inputs (docs/contract.md). Each line below is one operation of
// IEEE 754 binary32, rounded to nearest even, denormals kept, never fused: compile with
// -ffp-contract=off (nvcc: -fmad=false).

// Exact: a multiple of 2^-24 in [0, 1).
HONE_HOST_DEVICE inline float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

// uniform: low + span * k / 2^24 with span = high - low.
HONE_HOST_DEVICE inline float uniform_float(std::uint32_t word, float low, float span) {
  const float scaled = span * unit_float(word);
  return low + scaled;
}

// bell: the sum of four 16-bit uniforms, centred (a whole number within +-131070, exact in binary32)
// times `scale` = deviation / 37837.2266, itself one division of binary32. Takes two words: element
// i has words 2 (i mod 2) and 2 (i mod 2) + 1 of block i / 2. Reaches 3.46 deviations.
HONE_HOST_DEVICE inline float bell_scale(float deviation) { return deviation / 37837.2266f; }
HONE_HOST_DEVICE inline float bell_float(std::uint32_t word0, std::uint32_t word1, float scale) {
  const std::uint32_t sum = (word0 & 0xffffu) + (word0 >> 16) + (word1 & 0xffffu) + (word1 >> 16);
  return static_cast<float>(static_cast<std::int32_t>(sum) - 131070) * scale;
}

// integers, bits: low + floor(word * count / 2^32), 0 < count <= 2^32.
HONE_HOST_DEVICE inline std::uint32_t below(std::uint32_t word, std::uint64_t count) {
  return static_cast<std::uint32_t>((word * count) >> 32);
}

// log_scale: +-2^k; the word's lowest bit is the sign, the other 31 choose k among low .. low + count - 1.
HONE_HOST_DEVICE inline float power_of_two(std::uint32_t word, std::int32_t low, std::uint32_t count) {
  const std::int32_t k = low + static_cast<std::int32_t>((std::uint64_t{word >> 1} * count) >> 31);
  const std::uint32_t magnitude = k >= -126 ? static_cast<std::uint32_t>(k + 127) << 23 : 1u << (k + 149);
  const std::uint32_t bits = magnitude | (word << 31);
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

}  // namespace hone

#endif
