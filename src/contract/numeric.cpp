#include "contract/numeric.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hone/types.h"

namespace hone {
namespace {

// A binary floating format narrower than binary64: sign, exponent, mantissa.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool infinities;       // the top exponent is Inf and NaN; else only its all-ones pattern is NaN
};

constexpr Format kHalf{5, 10, 15, true};
constexpr Format kE4M3{4, 3, 7, false};   // OCP 8-bit formats: E4M3 has no infinities
constexpr Format kE5M2{5, 2, 15, true};

double widen(const Format& format, std::uint32_t bits) {
  const std::uint32_t exponent_mask = (1u << format.exponent_bits) - 1, mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask, exponent = bits >> format.mantissa_bits & exponent_mask;
  const bool negative = (bits >> (format.exponent_bits + format.mantissa_bits) & 1u) != 0;
  double value;
  if (format.infinities && exponent == exponent_mask)
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (!format.infinities && exponent == exponent_mask && mantissa == mantissa_mask)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  else
    value = std::ldexp(mantissa | (1u << format.mantissa_bits), static_cast<int>(exponent) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

// Round to nearest even. Beyond the largest finite value: half gives Inf, the 8-bit formats
// saturate, as the conversions of GPUs do by default.
std::uint32_t narrow(const Format& format, double value) {
  const int exponent_top = (1 << format.exponent_bits) - 1;
  const std::uint32_t sign = std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
  const std::uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t infinity = static_cast<std::uint32_t>(exponent_top) << format.mantissa_bits;
  if (std::isnan(value)) return format.infinities ? infinity | (1u << (format.mantissa_bits - 1)) : infinity | mantissa_mask;
  const std::uint32_t largest = format.infinities ? infinity - 1 : (infinity | mantissa_mask) - 1;
  const bool half = format.exponent_bits == 5 && format.mantissa_bits == 10;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(value)) return sign | (half ? infinity : largest);
  int exponent;
  std::frexp(magnitude, &exponent);   // magnitude = f * 2^exponent, f in [0.5, 1)
  const int lowest = 1 - format.bias;
  const int unit = std::max(exponent - 1, lowest) - format.mantissa_bits;   // of the last mantissa bit
  // Exact: scaling by a power of two; nearbyint rounds to nearest even.
  const double steps = std::nearbyint(std::ldexp(magnitude, -unit));
  // A carry out of the mantissa moves into the exponent, as the encoding is monotonic.
  const int base = std::max(exponent - 1, lowest) + format.bias - 1;
  const std::int64_t encoded = static_cast<std::int64_t>(steps) + (static_cast<std::int64_t>(base) << format.mantissa_bits);
  if (encoded > largest) return sign | (half ? infinity : largest);
  return sign | static_cast<std::uint32_t>(encoded);
}

float to_float32(double value) { return static_cast<float>(value); }

// binary64 to bfloat16 in one rounding: through binary32 rounded to odd, so that no tie is made.
std::uint16_t narrow_bf16(double value) {
  float wide = to_float32(value);
  std::uint32_t bits;
  std::memcpy(&bits, &wide, sizeof bits);
  if (std::isfinite(value) && static_cast<double>(wide) != value) {
    const bool above = std::fabs(static_cast<double>(wide)) > std::fabs(value);
    if (above) --bits;          // truncated; also brings an overflow back to the largest finite value
    bits |= 1u;
  }
  std::memcpy(&wide, &bits, sizeof wide);
  return to_bf16(wide).bits;
}

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  if (rounded <= low) return std::numeric_limits<T>::min();
  if (rounded >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  return static_cast<T>(rounded);
}

template <class T>
T read(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

template <class T>
void write(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof value);
}

// 2^(e - 127), 255 is NaN.
std::uint8_t narrow_ue8m0(double value) {
  if (std::isnan(value) || value < 0) return 255;
  if (value <= std::ldexp(1.0, -127)) return 0;
  if (value >= std::ldexp(1.0, 127)) return 254;
  int exponent;
  const double fraction = std::frexp(value, &exponent);   // [0.5, 1); the middle between powers is 0.75
  const int lower = exponent - 1 + 127;
  if (fraction > 0.75 || (fraction == 0.75 && lower % 2 != 0)) return static_cast<std::uint8_t>(lower + 1);
  return static_cast<std::uint8_t>(lower);
}

}  // namespace

double load_element(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64: return read<double>(at);
    case DType::f32: return static_cast<double>(read<float>(at));
    case DType::f16: return widen(kHalf, read<std::uint16_t>(at));
    case DType::bf16: return static_cast<double>(to_float(bf16{read<std::uint16_t>(at)}));
    case DType::e4m3: return widen(kE4M3, read<std::uint8_t>(at));
    case DType::e5m2: return widen(kE5M2, read<std::uint8_t>(at));
    case DType::ue8m0: {
      const auto bits = read<std::uint8_t>(at);
      return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
    }
    case DType::i8: return read<std::int8_t>(at);
    case DType::u8: return read<std::uint8_t>(at);
    case DType::i32: return read<std::int32_t>(at);
    case DType::u32: return read<std::uint32_t>(at);
    case DType::i64: return static_cast<double>(read<std::int64_t>(at));
  }
  return 0;
}

void store_element(DType dtype, double value, std::byte* at) {
  switch (dtype) {
    case DType::f64: return write(value, at);
    case DType::f32: return write(to_float32(value), at);
    case DType::f16: return write(static_cast<std::uint16_t>(narrow(kHalf, value)), at);
    case DType::bf16: return write(narrow_bf16(value), at);
    case DType::e4m3: return write(static_cast<std::uint8_t>(narrow(kE4M3, value)), at);
    case DType::e5m2: return write(static_cast<std::uint8_t>(narrow(kE5M2, value)), at);
    case DType::ue8m0: return write(narrow_ue8m0(value), at);
    case DType::i8: return write(saturate<std::int8_t>(value), at);
    case DType::u8: return write(saturate<std::uint8_t>(value), at);
    case DType::i32: return write(saturate<std::int32_t>(value), at);
    case DType::u32: return write(saturate<std::uint32_t>(value), at);
    case DType::i64: return write(saturate<std::int64_t>(value), at);
  }
}

}  // namespace hone
