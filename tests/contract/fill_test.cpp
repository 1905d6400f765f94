// Inputs, bit for bit. The table is the definition in numbers: a GPU's generator must give the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "contract/numeric.h"
#include "contract/philox_fill.h"
#include "contract/task.h"
#include "hone/philox.h"

namespace hone {
namespace {

using Kind = Distribution::Kind;

TensorShape shape_of(DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  TensorShape out;
  out.name = "x";
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.strides = std::move(strides);
  return out;
}

std::vector<std::byte> filled(DType dtype, const Distribution& distribution, std::int64_t count, std::uint64_t seed = 0x0123456789abcdef,
                              std::uint32_t stream = 3, std::uint32_t call = 17) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(dtype));
  fill_tensor(shape_of(dtype, {count}, {1}), distribution, seed, stream, call, bytes.data());
  return bytes;
}

// The known-answer vectors published with Random123 (kat_vectors, philox4x32 10 rounds).
TEST(Philox, KnownAnswers) {
  struct Case {
    PhiloxBlock counter;
    std::uint32_t key0, key1;
    PhiloxBlock expected;
  };
  const Case cases[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0, {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Case& each : cases) {
    const PhiloxBlock block = philox4x32(each.counter, each.key0, each.key1);
    for (int k = 0; k < 4; ++k) EXPECT_EQ(block.word[k], each.expected.word[k]);
  }
}

// The vector code against the definition, where the low word of the counter wraps too.
TEST(Philox, InBulk) {
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0xffffffff} - 20, std::uint64_t{0x123456789a}})
    for (const std::size_t blocks : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{43}}) {
      std::vector<std::uint32_t> words(4 * blocks + 1, 0xabababab);
      random_blocks(0xfedcba9876543210, 7, 0xffffffff, first, blocks, words.data());
      for (std::size_t i = 0; i < 4 * blocks; ++i)
        ASSERT_EQ(words[i], random_u32(0xfedcba9876543210, 7, 0xffffffff, 4 * first + i)) << first << " " << i;
      EXPECT_EQ(words.back(), 0xababababu);
    }
}

struct Row {
  const char* name;
  DType dtype;
  Distribution distribution;
  const char* first;    // the first four elements, hexadecimal, little-endian bytes
  const char* sha256;   // of 5000 elements
};

const Row kGolden[] = {
#include "fill_golden.inc"
};

TEST(Fill, Golden) {
  for (const Row& row : kGolden) {
    const std::vector<std::byte> bytes = filled(row.dtype, row.distribution, 5000);
    std::string first;
    for (std::size_t i = 0; i < 4 * size_of(row.dtype); ++i)
      first += fmt::format("{}{:02x}", i > 0 && i % size_of(row.dtype) == 0 ? " " : "", static_cast<unsigned>(bytes[i]));
    EXPECT_EQ(first, row.first) << row.name << " " << name_of(row.dtype);
    EXPECT_EQ(sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), row.sha256) << row.name << " " << name_of(row.dtype);
  }
}

// docs/contract.md once more, one element at a time.
float defined(const Distribution& distribution, std::uint64_t i, std::uint64_t seed, std::uint32_t stream, std::uint32_t call) {
  const auto word = [&](std::uint64_t at, std::uint32_t from) { return random_u32(seed, from, call, at); };
  const volatile float low = static_cast<float>(distribution.low), high = static_cast<float>(distribution.high);
  switch (distribution.kind) {
    case Kind::uniform: {
      const volatile float span = high - low;
      const volatile float unit = std::ldexp(static_cast<float>(word(i, stream) >> 8), -24);
      const volatile float scaled = span * unit;
      return low + scaled;
    }
    case Kind::sparse:
      if ((std::uint64_t{word(i, stream | 0x80000000u)} * static_cast<std::uint64_t>(high)) >> 32 != 0) return 0;
      [[fallthrough]];
    case Kind::bell: {
      const std::uint32_t a = word(2 * i, stream), b = word(2 * i + 1, stream);
      const int sum = static_cast<int>(a % 65536 + a / 65536 + b % 65536 + b / 65536) - 131070;
      const volatile float deviation = distribution.kind == Kind::bell ? high : 1.0f;
      const volatile float scale = deviation / 37837.2266f;
      return static_cast<float>(sum) * scale;
    }
    case Kind::log_scale: {
      const std::uint32_t each = word(i, stream);
      const auto count = static_cast<std::uint64_t>(high - low) + 1;
      const float magnitude = std::ldexp(1.0f, static_cast<int>(low) + static_cast<int>((each / 2) * count >> 31));
      return each % 2 == 1 ? -magnitude : magnitude;
    }
    case Kind::integers: {
      const auto count = static_cast<std::uint64_t>(distribution.high - distribution.low) + 1;
      return static_cast<float>(static_cast<std::int64_t>(distribution.low) + static_cast<std::int64_t>(word(i, stream) * count >> 32));
    }
    default: return low;
  }
}

TEST(Fill, AgreesWithTheDefinition) {
  const Distribution distributions[] = {{Kind::uniform, -1, 1}, {Kind::uniform, 0.1, 0.7}, {Kind::bell, 0, 1},      {Kind::bell, 0, 0.3},
                                        {Kind::integers, -5, 9}, {Kind::log_scale, -149, 127}, {Kind::sparse, 0, 16}, {Kind::constant, 1.5, 0}};
  for (const Distribution& each : distributions)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::e4m3}) {
      const std::vector<std::byte> bytes = filled(dtype, each, 5003, 99, 1, 2);
      for (std::size_t i = 0; i < 5003; ++i) {
        std::byte expected[8] = {};
        store_element(dtype, static_cast<double>(defined(each, i, 99, 1, 2)), expected);
        ASSERT_EQ(std::memcmp(expected, bytes.data() + i * size_of(dtype), size_of(dtype)), 0)
            << "kind " << static_cast<int>(each.kind) << " " << name_of(dtype) << " element " << i;
      }
    }
}

TEST(Fill, StridesChangeThePlaceNotTheValue) {
  const Distribution bell{Kind::bell, 0, 1};
  const std::vector<std::byte> dense = filled(DType::f32, bell, 3 * 5 * 7);
  for (const std::vector<std::int64_t>& strides : {std::vector<std::int64_t>{35, 7, 1}, {64, 9, 1}, {1, 3, 15}, {200, 20, 2}}) {
    const TensorShape shape = shape_of(DType::f32, {3, 5, 7}, strides);
    std::vector<std::byte> bytes(shape.bytes(), std::byte{0xcc});
    fill_tensor(shape, bell, 0x0123456789abcdef, 3, 17, bytes.data());
    std::vector<bool> touched(bytes.size() / 4, false);
    for (std::int64_t i = 0; i < 105; ++i) {
      const std::int64_t at = i / 35 * strides[0] + i / 7 % 5 * strides[1] + i % 7 * strides[2];
      touched[static_cast<std::size_t>(at)] = true;
      ASSERT_EQ(std::memcmp(bytes.data() + 4 * at, dense.data() + 4 * i, 4), 0) << i;
    }
    for (std::size_t i = 0; i < touched.size(); ++i)
      ASSERT_TRUE(touched[i] || bytes[4 * i] == std::byte{0xcc}) << "a gap was written";
  }
}

TEST(Fill, SeedStreamAndCallMatter) {
  const Distribution uniform{Kind::uniform, 0, 1};
  const auto first = filled(DType::f32, uniform, 100, 1, 2, 3);
  EXPECT_EQ(first, filled(DType::f32, uniform, 100, 1, 2, 3));
  EXPECT_NE(first, filled(DType::f32, uniform, 100, 2, 2, 3));
  EXPECT_NE(first, filled(DType::f32, uniform, 100, std::uint64_t{1} << 32, 2, 3));
  EXPECT_NE(first, filled(DType::f32, uniform, 100, 1, 3, 3));
  EXPECT_NE(first, filled(DType::f32, uniform, 100, 1, 2, 4));
}

TEST(Fill, RangesAndMoments) {
  const auto floats = [](const Distribution& each) {
    const std::vector<std::byte> bytes = filled(DType::f32, each, 100000);
    std::vector<double> out;
    for (std::size_t i = 0; i < 100000; ++i) out.push_back(load_element(DType::f32, bytes.data() + 4 * i));
    return out;
  };
  double sum = 0, squares = 0;
  for (double each : floats({Kind::bell, 0, 2})) {
    sum += each;
    squares += each * each;
    ASSERT_LE(std::abs(each), 2 * 3.465);
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.03);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 2, 0.02);
  std::map<double, int> counts;
  for (double each : floats({Kind::integers, -1, 2})) ++counts[each];
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 25000, 800) << value;
  int nonzero = 0;
  for (double each : floats({Kind::sparse, 0, 64})) nonzero += each != 0 ? 1 : 0;
  EXPECT_NEAR(nonzero, 100000 / 64, 200);
  for (double each : floats({Kind::uniform, 3, 5})) ASSERT_TRUE(each >= 3 && each <= 5);
}

}  // namespace
}  // namespace hone
