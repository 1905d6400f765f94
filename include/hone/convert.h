// Elements of any dtype as binary64, and back: exact widening, round-to-nearest-even narrowing. The same bits on the
// host and on a GPU.
#ifndef HONE_CONVERT_H
#define HONE_CONVERT_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hone/dtype.h>
#include <hone/host_device.h>
#include <hone/types.h>

namespace hone {
namespace detail {

// A binary floating format narrower than binary64: sign, exponent, mantissa.
struct NarrowFormat {
  int exponent_bits, mantissa_bits, bias;
  bool infinities;       // the top exponent is Inf and NaN; else only its all-ones pattern is NaN
};

HONE_HOST_DEVICE constexpr NarrowFormat half_format() { return {5, 10, 15, true}; }
HONE_HOST_DEVICE constexpr NarrowFormat e4m3_format() { return {4, 3, 7, false}; }   // OCP 8-bit: no infinities
HONE_HOST_DEVICE constexpr NarrowFormat e5m2_format() { return {5, 2, 15, true}; }

template <class T>
HONE_HOST_DEVICE inline T read_as(const void* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

template <class T>
HONE_HOST_DEVICE inline void write_as(T value, void* at) {
  std::memcpy(at, &value, sizeof value);
}

HONE_HOST_DEVICE inline double double_of(std::uint64_t bits) { return read_as<double>(&bits); }
HONE_HOST_DEVICE inline std::uint64_t magnitude_of(double value) { return read_as<std::uint64_t>(&value) & 0x7fffffffffffffffu; }
HONE_HOST_DEVICE inline bool is_negative(double value) { return read_as<std::uint64_t>(&value) >> 63 != 0; }

}  // namespace detail

HONE_HOST_DEVICE inline bool is_nan(double value) { return detail::magnitude_of(value) > 0x7ff0000000000000u; }
HONE_HOST_DEVICE inline bool is_finite(double value) { return detail::magnitude_of(value) < 0x7ff0000000000000u; }

namespace detail {

HONE_HOST_DEVICE inline double widen(const NarrowFormat& format, std::uint32_t bits) {
  const std::uint32_t exponent_mask = (1u << format.exponent_bits) - 1, mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask, exponent = bits >> format.mantissa_bits & exponent_mask;
  const bool negative = (bits >> (format.exponent_bits + format.mantissa_bits) & 1u) != 0;
  double value;
  if (format.infinities && exponent == exponent_mask)
    value = double_of(mantissa == 0 ? 0x7ff0000000000000u : 0x7ff8000000000000u);
  else if (!format.infinities && exponent == exponent_mask && mantissa == mantissa_mask)
    value = double_of(0x7ff8000000000000u);
  else if (exponent == 0)
    value = ldexp(static_cast<double>(mantissa), 1 - format.bias - format.mantissa_bits);
  else
    value = ldexp(static_cast<double>(mantissa | (1u << format.mantissa_bits)),
                  static_cast<int>(exponent) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

// Round to nearest even. Beyond the largest finite value: half gives Inf, the 8-bit formats
// saturate, as the conversions of GPUs do by default.
HONE_HOST_DEVICE inline std::uint32_t narrow(const NarrowFormat& format, double value) {
  const int exponent_top = (1 << format.exponent_bits) - 1;
  const std::uint32_t sign = is_negative(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
  const std::uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t infinity = static_cast<std::uint32_t>(exponent_top) << format.mantissa_bits;
  if (is_nan(value)) return format.infinities ? infinity | (1u << (format.mantissa_bits - 1)) : infinity | mantissa_mask;
  const std::uint32_t largest = format.infinities ? infinity - 1 : (infinity | mantissa_mask) - 1;
  const bool half = format.exponent_bits == 5 && format.mantissa_bits == 10;
  const double magnitude = double_of(magnitude_of(value));
  if (magnitude == 0) return sign;
  if (!is_finite(value)) return sign | (half ? infinity : largest);
  int exponent;
  frexp(magnitude, &exponent);   // magnitude = f * 2^exponent, f in [0.5, 1)
  const int lowest = 1 - format.bias;
  const int above = exponent - 1 > lowest ? exponent - 1 : lowest;
  const int unit = above - format.mantissa_bits;   // of the last mantissa bit
  // Exact: scaling by a power of two; nearbyint rounds to nearest even.
  const double steps = nearbyint(ldexp(magnitude, -unit));
  // A carry out of the mantissa moves into the exponent, as the encoding is monotonic.
  const int base = above + format.bias - 1;
  const std::int64_t encoded = static_cast<std::int64_t>(steps) + (static_cast<std::int64_t>(base) << format.mantissa_bits);
  if (encoded > static_cast<std::int64_t>(largest)) return sign | (half ? infinity : largest);
  return sign | static_cast<std::uint32_t>(encoded);
}

// binary64 to bfloat16 in one rounding: through binary32 rounded to odd, so that no tie is made.
HONE_HOST_DEVICE inline std::uint16_t narrow_bf16(double value) {
  float wide = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &wide, sizeof bits);
  if (is_finite(value) && static_cast<double>(wide) != value) {
    const bool above = magnitude_of(static_cast<double>(wide)) > magnitude_of(value);
    if (above) --bits;          // truncated; also brings an overflow back to the largest finite value
    bits |= 1u;
  }
  std::memcpy(&wide, &bits, sizeof wide);
  return to_bf16(wide).bits;
}

// Whole numbers, rounded to nearest even; beyond the type's range its ends, NaN is 0. `digits`: value bits of T.
template <class T>
HONE_HOST_DEVICE inline T saturate(double value, int digits, bool has_sign) {
  if (is_nan(value)) return 0;
  const double rounded = nearbyint(value), limit = ldexp(1.0, digits);
  const T largest = static_cast<T>((std::uint64_t{1} << digits) - 1);
  if (has_sign && rounded <= -limit) return static_cast<T>(-static_cast<std::int64_t>((std::uint64_t{1} << digits) - 1) - 1);
  if (!has_sign && rounded <= 0) return 0;
  if (rounded >= limit) return largest;
  return static_cast<T>(rounded);
}

// 2^(e - 127), 255 is NaN.
HONE_HOST_DEVICE inline std::uint8_t narrow_ue8m0(double value) {
  if (is_nan(value) || value < 0) return 255;
  if (value <= ldexp(1.0, -127)) return 0;
  if (value >= ldexp(1.0, 127)) return 254;
  int exponent;
  const double fraction = frexp(value, &exponent);   // [0.5, 1); the middle between powers is 0.75
  const int lower = exponent - 1 + 127;
  if (fraction > 0.75 || (fraction == 0.75 && lower % 2 != 0)) return static_cast<std::uint8_t>(lower + 1);
  return static_cast<std::uint8_t>(lower);
}

}  // namespace detail

HONE_HOST_DEVICE inline double load_element(DType dtype, const void* at) {
  using namespace detail;
  switch (dtype) {
    case DType::f64: return read_as<double>(at);
    case DType::f32: return static_cast<double>(read_as<float>(at));
    case DType::f16: return widen(half_format(), read_as<std::uint16_t>(at));
    case DType::bf16: return static_cast<double>(to_float(bf16{read_as<std::uint16_t>(at)}));
    case DType::e4m3: return widen(e4m3_format(), read_as<std::uint8_t>(at));
    case DType::e5m2: return widen(e5m2_format(), read_as<std::uint8_t>(at));
    case DType::ue8m0: {
      const auto bits = read_as<std::uint8_t>(at);
      return bits == 255 ? double_of(0x7ff8000000000000u) : ldexp(1.0, bits - 127);
    }
    case DType::i8: return read_as<std::int8_t>(at);
    case DType::u8: return read_as<std::uint8_t>(at);
    case DType::i32: return read_as<std::int32_t>(at);
    case DType::u32: return read_as<std::uint32_t>(at);
    case DType::i64: return static_cast<double>(read_as<std::int64_t>(at));
  }
  return 0;
}

HONE_HOST_DEVICE inline void store_element(DType dtype, double value, void* at) {
  using namespace detail;
  switch (dtype) {
    case DType::f64: return write_as(value, at);
    case DType::f32: return write_as(static_cast<float>(value), at);
    case DType::f16: return write_as(static_cast<std::uint16_t>(narrow(half_format(), value)), at);
    case DType::bf16: return write_as(narrow_bf16(value), at);
    case DType::e4m3: return write_as(static_cast<std::uint8_t>(narrow(e4m3_format(), value)), at);
    case DType::e5m2: return write_as(static_cast<std::uint8_t>(narrow(e5m2_format(), value)), at);
    case DType::ue8m0: return write_as(narrow_ue8m0(value), at);
    case DType::i8: return write_as(saturate<std::int8_t>(value, 7, true), at);
    case DType::u8: return write_as(saturate<std::uint8_t>(value, 8, false), at);
    case DType::i32: return write_as(saturate<std::int32_t>(value, 31, true), at);
    case DType::u32: return write_as(saturate<std::uint32_t>(value, 32, false), at);
    case DType::i64: return write_as(saturate<std::int64_t>(value, 63, true), at);
  }
}

}  // namespace hone

#endif
