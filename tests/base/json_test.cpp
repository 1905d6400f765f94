#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/yaml.h"
#include "testing/testing.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST(Json, WhatIsStrictlyJsonIsRead) {
  const auto value = parse_json(R"({"a": [1, {"b": "\u00e9"}], "c": null})");
  HONE_ASSERT_OK(value);
  EXPECT_EQ((*value)["a"][1]["b"], "\xc3\xa9");
}

TEST(Json, StrangeInputIsRefusedInOneLine) {
  const std::string deep(100'000, '[');
  const std::pair<std::string, const char*> cases[] = {
      {"", "not valid JSON"},        {"{\"a\": 1, \"a\": 2}", "a is there twice"}, {"[{\"x\": {\"y\": 1, \"y\": 1}}]", "y is there twice"},
      {deep, "nested too deeply"},   {"\"\xff\"", "not valid JSON"},              {"{\"a\": 1} x", "not valid JSON"},
      {"NaN", "not valid JSON"},     {"1e999", "not valid JSON"},                 {"[1,]", "not valid JSON"},
      {"\"\\ud800\"", "not valid JSON"}};
  for (const auto& [text, why] : cases) {
    const auto value = parse_json(text);
    HONE_EXPECT_ERROR(value, contract);
    if (value) continue;
    EXPECT_THAT(value.error().message, HasSubstr(why)) << text.substr(0, 40);
    EXPECT_EQ(value.error().message.find('\n'), std::string::npos);
  }
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += "1,";
  HONE_EXPECT_ERROR(parse_json(many + "1]", {.depth = 4, .values = 1000}), contract);
}

TEST(Json, ASchemaTakesWholeNumbersOf64Bits) {
  const std::string schema = R"({"type": "object", "properties": {"seed": {"type": "integer", "minimum": 0, "maximum": 18446744073709551615}, "small": {"type": "integer", "maximum": 9}}})";
  HONE_EXPECT_ERROR(check_schema(nlohmann::json{{"seed", -1}}, schema, "x"), contract);
  HONE_ASSERT_OK(check_schema(nlohmann::json{{"seed", UINT64_MAX}}, schema, "x"));
  HONE_EXPECT_ERROR(check_schema(nlohmann::json{{"small", UINT64_MAX}}, schema, "x"), contract);
}

}  // namespace
}  // namespace hone
