#include "base/expression.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <optional>

#include "testing/testing.h"

namespace hone {
namespace {

using Int = std::int64_t;
constexpr Int kMin = std::numeric_limits<Int>::min(), kMax = std::numeric_limits<Int>::max();

const ExpressionValues kValues = {{"M", {100}}, {"K", {7}}, {"rows", {1, 9, 200}}, {"one", {5}}, {"none", {}}};

TEST(Expression, Values) {
  const std::vector<std::pair<const char*, Int>> cases = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"-7 / 2", -3},
      {"-7 % 2", -1},
      {"10 - 3 - 2", 5},
      {"- - 4", 4},
      {"!0 + !5", 1},
      {"M / K", 14},
      {"ceil_div(M, 8)", 13},
      {"ceil_div(-9, 8)", -1},
      {"align_up(M, 8)", 104},
      {"sum(align_up(rows, 8))", 224},
      {"sum(rows * 2 + 1)", 423},
      {"count(rows)", 3},
      {"count(none) + sum(none)", 0},
      {"max(rows)", 200},
      {"min(rows, -4)", -4},
      {"one + 1", 6},
      {"M % 4 == 0 && K > 6 || 0", 1},
      {"M % 4 == 1 || K >= 7 and not K == 8", 1},
      {"not M", 0},
      {"1 < 2 == 1", 1},
      {"0 && 1 / 0", 0},
      {"1 || 1 / 0", 1},
      {"0 and 9223372036854775807 + 1", 0},
      {"9223372036854775807", kMax},
      {"-9223372036854775807 - 1", kMin},
      {"(-9223372036854775807 - 1) % -1", 0},
  };
  for (const auto& [text, expected] : cases) {
    const auto value = evaluate(text, kValues);
    ASSERT_TRUE(value) << text << ": " << to_text(value.error());
    EXPECT_EQ(*value, expected) << text;
  }
}

TEST(Expression, ErrorsNameTheColumn) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "the expression ends where a value is needed at column 1"},
      {"1 +", "the expression ends where a value is needed at column 4"},
      {"M = 3", "unexpected '=' at column 3"},
      {"3 4", "unexpected '4' at column 3"},
      {"(1", "the parenthesis of column 1 is not closed at column 3"},
      {"m", "unknown name \"m\" at column 1"},
      {"M * foo(2)", "unknown function \"foo\" at column 5"},
      {"ceil_div(1)", "ceil_div takes two arguments, not 1 at column 1"},
      {"min()", "min takes at least one argument, not 0 at column 1"},
      {"max(none)", "max of an empty list at column 1"},
      {"rows", "is a list of 3 where a number is needed"},
      {"M && rows", "a list of 3 where a number is needed at column 5"},
      {"rows + none", "lists of different lengths, 3 and 0 at column 6"},
      {"M / (K - 7)", "division by zero at column 3"},
      {"M % 0", "division by zero at column 3"},
      {"align_up(M, 0)", "must be above 0, not 0 at column 1"},
      {"9223372036854775807 + 1", "overflow of 64 bits at column 21"},
      {"(-9223372036854775807 - 1) / -1", "overflow of 64 bits at column 28"},
      {"99999999999999999999", "a number that does not fit in 64 bits at column 1"},
      {"1.5", "a malformed number at column 1"},
      {"0x10", "a malformed number at column 1"},
      {"1 and or 2", "\"or\" where a value is needed at column 7"},
      {"M\x01", "unexpected byte 0x01 at column 2"},
  };
  for (const auto& [text, expected] : cases) {
    const auto value = evaluate(text, kValues);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().kind, ErrorKind::contract);
    EXPECT_NE(value.error().message.find(expected), std::string::npos) << value.error().message;
  }
}

TEST(Expression, DepthAndLengthAreLimited) {
  for (const char* repeated : {"(", "-", "!", "not ", "min("}) {
    std::string deep;
    for (int i = 0; i < 500; ++i) deep += repeated;
    const auto value = evaluate(deep + "1", {});
    ASSERT_FALSE(value) << repeated;
    EXPECT_NE(value.error().message.find("nested more than 64 deep"), std::string::npos) << value.error().message;
  }
  EXPECT_FALSE(evaluate(std::string(5000, '1'), {}));
  EXPECT_TRUE(evaluate(std::string(64, '(') + "1" + std::string(64, ')'), {}));
}

TEST(Expression, NamesInOrderOfUse) {
  const auto names = names_in("K * M + ceil_div(K, rows) && 1 / 0");
  HONE_ASSERT_OK(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"K", "M", "rows"}));
  EXPECT_FALSE(names_in("K *"));
}

// A random expression as text, and its value by arithmetic of 128 bits; nullopt when some step
// leaves 64 bits or divides by zero.
struct Sample {
  std::string text;
  std::optional<Int> value;
};

std::optional<Int> fit(__int128 value) {
  if (value < kMin || value > kMax) return std::nullopt;
  return static_cast<Int>(value);
}

Sample sample(int depth) {
  const int choice = depth == 0 ? 0 : *rc::gen::inRange(0, 12);
  if (choice <= 1) {
    const Int value = *rc::gen::element<Int>(0, 1, 2, 3, 7, 64, 1000003, Int{1} << 31, Int{1} << 62, kMax);
    return {std::to_string(value), value};
  }
  const Sample a = sample(depth - 1);
  if (choice == 2) return {"-(" + a.text + ")", a.value ? fit(-static_cast<__int128>(*a.value)) : std::nullopt};
  const Sample b = sample(depth - 1);
  const bool both = a.value && b.value;
  const __int128 x = a.value.value_or(0), y = b.value.value_or(0);
  const auto binary = [&](const char* op, std::optional<Int> value) { return Sample{"(" + a.text + op + b.text + ")", both ? value : std::nullopt}; };
  switch (choice) {
    case 3: return binary(" + ", fit(x + y));
    case 4: return binary(" - ", fit(x - y));
    case 5: return binary("*", fit(x * y));
    case 6: return binary("/", y == 0 ? std::nullopt : fit(x / y));
    case 7: return binary(" % ", y == 0 ? std::nullopt : fit(x % y));
    case 8: return binary("<", x < y);
    case 9: return binary(" == ", x == y);
    case 10: {
      // The right side does not count when the left one decides.
      if (!a.value) return {"(" + a.text + " && " + b.text + ")", std::nullopt};
      if (*a.value == 0) return {"(" + a.text + " && " + b.text + ")", 0};
      return binary(" && ", Int{y != 0});
    }
    default: return {"max(" + a.text + ", " + b.text + ")", both ? std::optional(std::max(*a.value, *b.value)) : std::nullopt};
  }
}

TEST(Expression, AgreesWithWideArithmetic) {
  EXPECT_TRUE(rc::check("evaluate", [] {
    const Sample each = sample(5);
    const auto value = evaluate(each.text, {});
    RC_LOG() << each.text << "\n";
    if (each.text.size() > 4096) return;
    RC_ASSERT(value.has_value() == each.value.has_value());
    if (value) RC_ASSERT(*value == *each.value);
  }));
}

TEST(Expression, AnyTextEndsInAValueOrAnError) {
  EXPECT_TRUE(rc::check("total", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("()+-*/%<>=!&| ,01Mrows_andotminxceil.\x80")));
    const auto value = evaluate(text, kValues);
    if (!value) RC_ASSERT(value.error().kind == ErrorKind::contract);
  }));
}

}  // namespace
}  // namespace hone
