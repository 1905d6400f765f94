#include "contract/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "hone/types.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint64_t bits_of(DType dtype, double value) {
  std::byte bytes[8] = {};
  store_element(dtype, value, bytes);
  std::uint64_t out = 0;
  std::memcpy(&out, bytes, size_of(dtype));
  return out;
}

double value_of(DType dtype, std::uint64_t bits) {
  std::byte bytes[8];
  std::memcpy(bytes, &bits, sizeof bits);
  return load_element(dtype, bytes);
}

// Every pattern of the small formats widens and narrows to itself, in increasing order.
TEST(Numeric, EveryPatternComesBack) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::ue8m0, DType::i8, DType::u8}) {
    const std::uint64_t count = std::uint64_t{1} << (8 * size_of(dtype));
    for (std::uint64_t bits = 0; bits < count; ++bits) {
      const double value = value_of(dtype, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(value_of(dtype, bits_of(dtype, value)))) << name_of(dtype);
        continue;
      }
      // Both 8-bit floats saturate: their infinities are not made by arithmetic here.
      if (std::isinf(value) && dtype == DType::e5m2) continue;
      ASSERT_EQ(bits_of(dtype, value), bits) << name_of(dtype) << " " << value;
    }
  }
}

// Between two neighbours: below the middle down, above it up, at it to the even one.
TEST(Numeric, RoundsToNearestEven) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    const std::uint64_t top = dtype == DType::f16 ? 0x7bff : dtype == DType::bf16 ? 0x7f7f : dtype == DType::e4m3 ? 0x7e : 0x7b;
    for (std::uint64_t bits = 0; bits < top; bits += size_of(dtype) == 1 ? 1 : 7) {
      const double low = value_of(dtype, bits), high = value_of(dtype, bits + 1), middle = low + (high - low) / 2;
      ASSERT_EQ(bits_of(dtype, std::nextafter(middle, 0)), bits) << name_of(dtype) << " " << low;
      ASSERT_EQ(bits_of(dtype, std::nextafter(middle, high)), bits + 1) << name_of(dtype) << " " << low;
      ASSERT_EQ(bits_of(dtype, middle), bits % 2 == 0 ? bits : bits + 1) << name_of(dtype) << " " << low;
    }
  }
}

TEST(Numeric, Edges) {
  EXPECT_EQ(bits_of(DType::f16, 65519.9), 0x7bffu);
  EXPECT_EQ(bits_of(DType::f16, 65520), 0x7c00u);
  EXPECT_EQ(bits_of(DType::f16, -kInfinity), 0xfc00u);
  EXPECT_EQ(bits_of(DType::f16, 0x1p-25), 0u);
  EXPECT_EQ(bits_of(DType::f16, -0.0), 0x8000u);
  EXPECT_EQ(bits_of(DType::e4m3, 1e9), 0x7eu);
  EXPECT_EQ(bits_of(DType::e4m3, -kInfinity), 0xfeu);
  EXPECT_EQ(value_of(DType::e4m3, 0x7e), 448);
  EXPECT_TRUE(std::isnan(value_of(DType::e4m3, 0x7f)));
  EXPECT_EQ(bits_of(DType::e5m2, 1e9), 0x7bu);
  EXPECT_EQ(value_of(DType::e5m2, 0x7b), 57344);
  EXPECT_EQ(bits_of(DType::bf16, 3.4e38), 0x7f80u);
  EXPECT_EQ(bits_of(DType::bf16, 1e300), 0x7f80u);
  EXPECT_EQ(bits_of(DType::bf16, 1e-300), 0u);
  EXPECT_EQ(value_of(DType::ue8m0, 127), 1);
  EXPECT_EQ(bits_of(DType::ue8m0, 1.4), 127u);
  EXPECT_EQ(bits_of(DType::ue8m0, 1.6), 128u);
  EXPECT_EQ(bits_of(DType::ue8m0, -1), 255u);
  EXPECT_EQ(value_of(DType::i8, bits_of(DType::i8, -300)), -128);
  EXPECT_EQ(value_of(DType::u8, bits_of(DType::u8, 2.5)), 2);
  EXPECT_EQ(value_of(DType::i64, bits_of(DType::i64, 1e30)), static_cast<double>(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(value_of(DType::i32, bits_of(DType::i32, std::nan(""))), 0);
  EXPECT_EQ(value_of(DType::u32, bits_of(DType::u32, 4294967295.0)), 4294967295.0);
}

}  // namespace
}  // namespace hone
