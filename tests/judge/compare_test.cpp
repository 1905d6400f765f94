#include "judge/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "hone/types.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TensorShape matrix(std::int64_t rows, std::int64_t columns, std::int64_t pitch, DType dtype = DType::f32) {
  return {"D", dtype, TensorRole::output, {rows, columns}, {pitch, 1}};
}

std::vector<std::byte> f32_bytes(const std::vector<float>& values) {
  std::vector<std::byte> out(4 * values.size());
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

Comparison compare(const Gate& gate, const TensorShape& shape, const std::vector<Region>& regions, const Rows& got, const Rows& want,
                   const PoisonTest& poison = {}) {
  HostPair pair(got, want, poison);
  auto comparison = compare(gate, shape, regions, pair, poison != nullptr);
  EXPECT_TRUE(comparison.has_value());
  return comparison ? *comparison : Comparison{};
}

Comparison compare_rows(const Gate& gate, std::vector<double> got, std::vector<double> want, std::int64_t columns,
                        const std::vector<Region>& regions = {}) {
  const auto shape = matrix(static_cast<std::int64_t>(got.size()) / columns, columns, columns, DType::f64);
  return compare(gate, shape, regions, Rows(shape, got), Rows(shape, want));
}

TEST(Compare, EveryMetricRefusesNaNAndInfinity) {
  for (const char* metric : {"rel_energy", "rel_l2", "abs", "rel_max", "row_rel_l2", "bound"}) {
    for (const double bad : {kNaN, kInf, -kInf}) {
      const Gate gate{metric, 1e300, 1e300};
      const Comparison comparison = compare_rows(gate, {1, 2, bad, 4}, {1, 2, 3, 4}, 2);
      EXPECT_FALSE(comparison.passed()) << metric << " " << bad;
      ASSERT_TRUE(comparison.error()) << metric;
      EXPECT_EQ(comparison.error()->kind, ErrorKind::non_finite);
      EXPECT_THAT(comparison.error()->message, HasSubstr("(all, row 1, column 0)"));
      EXPECT_THAT(comparison.error()->message, HasSubstr("1 of 4"));
    }
    EXPECT_TRUE(compare_rows({metric, 1e-9, 1e-9}, {1, 2, 3, 4}, {1, 2, 3, 4}, 2).passed()) << metric;
  }
}

TEST(Compare, NonFiniteReferenceWantsTheSame) {
  const Gate gate{"rel_l2", 1e-6, 0};
  EXPECT_TRUE(compare_rows(gate, {1, kInf}, {1, kInf}, 2).passed());
  EXPECT_TRUE(compare_rows(gate, {1, kNaN}, {1, kNaN}, 2).passed());
  EXPECT_FALSE(compare_rows(gate, {1, -kInf}, {1, kInf}, 2).passed());
  EXPECT_FALSE(compare_rows(gate, {1, 7}, {1, kNaN}, 2).passed());
  EXPECT_FALSE(compare_rows(gate, {1, kNaN}, {1, kInf}, 2).passed());
}

TEST(Compare, ReferenceBeyondTheTypeIsItsInfinity) {
  const auto shape = matrix(1, 2, 2);
  const auto bytes = f32_bytes({1.0f, std::numeric_limits<float>::infinity()});
  const std::vector<double> over = {1, 1e39}, within = {1, 3.4e38};
  const Gate gate{"rel_l2", 1e-6, 0};
  EXPECT_TRUE(compare(gate, shape, {}, Rows(shape, bytes), Rows(shape, over)).passed());
  EXPECT_FALSE(compare(gate, shape, {}, Rows(shape, bytes), Rows(shape, within)).passed());
}

TEST(Compare, PaddingRowsAreNotLookedAt) {
  const std::vector<Region> regions = {{"group 0", 0, 1}, {"group 1", 2, 3}};
  const Gate gate{"rel_l2", 1e-6, 0};
  EXPECT_TRUE(compare_rows(gate, {1, 2, kNaN, kNaN, 5, 6}, {1, 2, 0, 0, 5, 6}, 2, regions).passed());
  const Comparison wrong = compare_rows(gate, {1, 2, 0, 0, 5, kNaN}, {1, 2, 0, 0, 5, 6}, 2, regions);
  EXPECT_THAT(wrong.error()->message, HasSubstr("(group 1, row 0, column 1)"));
}

TEST(Compare, ASmallRegionIsNotHiddenByALargeOne) {
  const std::vector<Region> regions = {{"big", 0, 1}, {"small", 1, 2}};
  const Comparison comparison = compare_rows({"rel_l2", 1e-2, 0}, {1e6, 1e6, 1, 1.5}, {1e6, 1e6, 1, 1}, 2, regions);
  EXPECT_FALSE(comparison.passed());
  EXPECT_EQ(comparison.region, "small");
}

TEST(Compare, Metrics) {
  const std::vector<double> want = {3, 4}, got = {3, 4.5};
  EXPECT_NEAR(compare_rows({"abs", 1, 0}, got, want, 2).value, 0.5, 1e-12);
  EXPECT_NEAR(compare_rows({"rel_max", 1, 0}, got, want, 2).value, 0.125, 1e-12);
  EXPECT_NEAR(compare_rows({"rel_l2", 1, 0}, got, want, 2).value, 0.1, 1e-12);
  EXPECT_NEAR(compare_rows({"row_rel_l2", 1, 0}, got, want, 2).value, 0.1, 1e-12);
  EXPECT_NEAR(compare_rows({"bound", 0.05, 0.05}, got, want, 2).value, 2, 1e-12);
  // 1 - 2*sum(xy)/sum(x^2+y^2)
  EXPECT_NEAR(compare_rows({"rel_energy", 1, 0}, got, want, 2).value, 1 - 2 * (9 + 18) / (9 + 20.25 + 25), 1e-12);
  EXPECT_FALSE(compare_rows({"no such metric", 1e300, 0}, want, want, 2).passed());
}

TEST(Compare, SquaresNeitherOverflowNorVanish) {
  for (const double scale : {1e-200, 1e200}) {
    const Comparison comparison = compare_rows({"rel_l2", 0.05, 0}, {3 * scale, 4.5 * scale}, {3 * scale, 4 * scale}, 2);
    EXPECT_NEAR(comparison.value, 0.1, 1e-9) << scale;
    EXPECT_FALSE(comparison.passed());
    EXPECT_NEAR(comparison.largest_reference / scale, 4, 1e-9);
  }
}

TEST(Compare, ZeroReferenceNeedsZero) {
  for (const char* metric : {"rel_energy", "rel_l2", "rel_max", "row_rel_l2"}) {
    EXPECT_TRUE(compare_rows({metric, 1e-3, 0}, {0, 0}, {0, 0}, 2).passed()) << metric;
    EXPECT_FALSE(compare_rows({metric, 1e-3, 0}, {0, 1e-30}, {0, 0}, 2).passed()) << metric;
  }
}

TEST(Compare, UntouchedElementsAreCountedThroughThePitch) {
  const auto shape = matrix(3, 2, 4);
  std::vector<float> memory(12, -1e-38f);
  memory[0] = 1, memory[1] = 2, memory[4] = 3;                  // row 1's second element and row 2 are missing
  const auto bytes = f32_bytes(memory);
  const std::vector<double> want = {1, 2, 3, 4, 5, 6};
  const PoisonTest poison = [&](std::size_t offset) { return memory[offset / 4] == -1e-38f; };
  const Comparison comparison = compare({"rel_l2", 1e-5, 0}, shape, {}, Rows(shape, bytes), Rows(shape, want), poison);
  EXPECT_EQ(comparison.not_written, 3);
  EXPECT_EQ(comparison.error()->kind, ErrorKind::not_written);
  EXPECT_THAT(comparison.error()->message, HasSubstr("output not written: 3 of 6"));
  EXPECT_THAT(comparison.error()->message, HasSubstr("(all, row 1, column 1)"));
}

// Two-byte types hit a two-byte pattern by chance; a right value is right.
TEST(Compare, ARightValueThatLooksLikePoisonIsWritten) {
  const auto shape = matrix(1, 4, 4, DType::bf16);
  std::vector<std::byte> bytes(8);
  const bf16 value = to_bf16(1.5f);
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(bytes.data() + 2 * i, &value, 2);
  const std::vector<double> want = {1.5, 1.5, 1.502, 1.5};
  const Comparison comparison = compare({"rel_l2", 1e-2, 0}, shape, {}, Rows(shape, bytes), Rows(shape, want), [](std::size_t) { return true; });
  EXPECT_TRUE(comparison.passed()) << to_text(*comparison.error());
}

// Untouched memory may hold something tiny that a relative gate over everything would let through.
TEST(Compare, OneUntouchedElementIsSeenUnderALooseGate) {
  std::vector<double> want(1000, 1), got = want;
  got[999] = 0;
  const auto shape = matrix(1, 1000, 1000, DType::f64);
  const Comparison comparison = compare({"rel_energy", 1e-3, 0}, shape, {}, Rows(shape, got), Rows(shape, want),
                                        [](std::size_t offset) { return offset == 8 * 999; });
  EXPECT_LE(comparison.value, 1e-3);
  EXPECT_EQ(comparison.not_written, 1);
  EXPECT_FALSE(comparison.passed());
}

TEST(Compare, TwoOutputsWithinTheGateAreWithinTheGateBetweenThem) {
  std::vector<double> want(64), high(64), low(64);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = std::sin(static_cast<double>(i)) * (i % 7 == 0 ? 100 : 1);
  for (const char* metric : {"rel_energy", "rel_l2", "abs", "rel_max", "row_rel_l2", "bound"}) {
    const Gate gate{metric, 0.01, 0.001};
    for (double step = 1e-5;; step *= 1.3) {                    // the largest opposite errors that pass
      std::vector<double> next_high = want, next_low = want;
      for (std::size_t i = 0; i < want.size(); ++i) next_high[i] *= 1 + step, next_low[i] *= 1 - step;
      if (!compare_rows(gate, next_high, want, 8).passed() || !compare_rows(gate, next_low, want, 8).passed()) break;
      high = next_high, low = next_low;
    }
    EXPECT_TRUE(compare_rows(between_outputs(gate), high, low, 8).passed()) << metric;
    std::vector<double> wrong = low;
    for (double& value : wrong) value *= 3;
    EXPECT_FALSE(compare_rows(between_outputs(gate), high, wrong, 8).passed()) << metric;
  }
}

TEST(Compare, StridedAndHighRank) {
  const TensorShape shape{"t", DType::f32, TensorRole::output, {2, 2, 2}, {16, 4, 2}};
  std::vector<float> memory(32, 99);
  const std::vector<double> want = {1, 2, 3, 4, 5, 6, 7, 8};
  for (std::size_t i = 0; i < 8; ++i) memory[16 * (i / 4) + 4 * (i / 2 % 2) + 2 * (i % 2)] = static_cast<float>(want[i]);
  const auto bytes = f32_bytes(memory);
  EXPECT_TRUE(compare({"abs", 0, 0}, shape, {}, Rows(shape, bytes), Rows(shape, want)).passed());
  EXPECT_EQ(Rows(shape, bytes).offset(3, 1), 4u * (16 + 4 + 2));
}

}  // namespace
}  // namespace hone
