// Element types that the C++ language lacks, in their memory format, with exact conversions.
#ifndef HONE_TYPES_H
#define HONE_TYPES_H

#include <cstdint>
#include <cstring>

#include <hone/host_device.h>

namespace hone {

// bfloat16: the upper half of an IEEE 754 binary32.
struct bf16 {
  std::uint16_t bits;
};

HONE_HOST_DEVICE inline float to_float(bf16 value) {
  const std::uint32_t wide = static_cast<std::uint32_t>(value.bits) << 16;
  float out;
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

// Round to nearest, ties to even; NaN stays a (quiet) NaN.
HONE_HOST_DEVICE inline bf16 to_bf16(float value) {
  std::uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  if ((wide & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((wide >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16)};
}

}  // namespace hone

#endif
