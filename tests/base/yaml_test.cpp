#include "base/yaml.h"

#include <gtest/gtest.h>

#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;

json value_of(std::string_view text) {
  const auto document = parse_yaml(text, "f.yaml");
  EXPECT_TRUE(document) << text << "\n" << to_text(document.error());
  return document ? document->value : json("parse error");
}

TEST(Yaml, CoreSchemaScalars) {
  const std::vector<std::pair<const char*, json>> cases = {
      {"null", nullptr}, {"~", nullptr},       {"", nullptr},         {"true", true},        {"False", false},
      {"12", 12},        {"-12", -12},         {"+5", 5},             {"010", 10},           {"0x1f", 31},
      {"0o17", 15},      {"1e-6", 1e-6},       {"-1.5", -1.5},        {".5", 0.5},           {"3.", 3.0},
      {"yes", "yes"},    {"off", "off"},       {"'12'", "12"},        {"\"true\"", "true"},  {"1_000", "1_000"},
      {"--5", "--5"},    {"+-5", "+-5"},       {".", "."},            {"e5", "e5"},          {"0xg", "0xg"},
      {"!!str 12", "12"}, {"9223372036854775807", INT64_MAX},         {"-9223372036854775808", INT64_MIN},
      {"18446744073709551615", UINT64_MAX},    {"inf", "inf"},        {"1.5.2", "1.5.2"},    {"-", json::array({nullptr})},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
}

TEST(Yaml, Collections) {
  EXPECT_EQ(value_of("a: 1\nb: [x, {c: 2}]\nd:\ne: &z [1, 2]\nf: *z\n"),
            json::parse(R"({"a":1,"b":["x",{"c":2}],"d":null,"e":[1,2],"f":[1,2]})"));
  EXPECT_EQ(value_of("t: |\n  one\n  two\n")["t"], "one\ntwo\n");
}

TEST(Yaml, Places) {
  const auto document = parse_yaml("a: 1\nlist:\n  - x\n  - {c: 2, d/e: 3}\nempty:\n", "f.yaml");
  HONE_ASSERT_OK(document);
  const auto at = [&](const char* pointer) {
    const Place place = document->place_of(pointer);
    return fmt::format("{}:{}:{}", place.file, place.line, place.column);
  };
  EXPECT_EQ(at("/a"), "f.yaml:1:4");
  EXPECT_EQ(at("/list"), "f.yaml:2:1");
  EXPECT_EQ(at("/list/0"), "f.yaml:3:5");
  EXPECT_EQ(at("/list/1/c"), "f.yaml:4:9");
  EXPECT_EQ(at("/list/1/d~1e"), "f.yaml:4:17");
  EXPECT_EQ(at("/empty"), "f.yaml:5:1");
  EXPECT_EQ(at("/list/1/none/deeper"), at("/list/1"));
  EXPECT_EQ(at("/none"), "f.yaml:1:1");
}

TEST(Yaml, ErrorsAreLocated) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"a: 1\na: 2\n", "f.yaml:2:1: error(contract): the key \"a\" occurs twice"},
      {"a: [1\nb: 2\n", "f.yaml:2:2: error(contract): not YAML: end of sequence flow not found"},
      {"a: &a [*a]\n", "f.yaml:1:8: error(contract): an alias inside the value that it names"},
      {"b: *x\n", "f.yaml:1:4: error(contract): not YAML: the referenced anchor is not defined"},
      {"a: \xff\n", "f.yaml:1:4: error(contract): byte 0xff is not part of UTF-8 text"},
      {"a: 1\nb: \xed\xa0\x80\n", "f.yaml:2:4: error(contract): byte 0xed is not part of UTF-8 text"},
      {"a: \xc0\xaf\n", "f.yaml:1:4: error(contract): byte 0xc0 is not part of UTF-8 text"},
      {std::string("a: \0b\n", 6), "f.yaml:1:4: error(contract): byte 0x00 is not part of UTF-8 text"},
      {"? [1]\n: 2\n", "f.yaml:1:3: error(contract): a key must be text"},
      {"a: .inf\n", "f.yaml:1:4: error(contract): .inf: infinite and not-a-number values are not allowed"},
      {"a: 1\n---\nb: 2\n", "f.yaml:2:1: error(contract): a second document in one file"},
      {"<<: {a: 1}\n", "f.yaml:1:1: error(contract): merge keys (<<) are not supported"},
      {"a: !foo 1\n", "f.yaml:1:4: error(contract): the tag !foo is not supported"},
      {"a: 99999999999999999999\n", "f.yaml:1:4: error(contract): 99999999999999999999: a whole number that does not fit in 64 bits"},
      {"a: 1e999\n", "f.yaml:1:4: error(contract): 1e999: a number beyond the range of float64"},
  };
  for (const auto& [text, expected] : cases) {
    const auto document = parse_yaml(text, "f.yaml");
    ASSERT_FALSE(document) << text;
    const std::string shown = to_text(document.error());
    EXPECT_EQ(shown.substr(0, shown.find('\n')), expected);
  }
}

TEST(Yaml, HostileDocumentsEndInAnError) {
  std::string bomb = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 9; ++k) bomb += fmt::format("{}*a{}", k == 0 ? "" : ", ", i - 1);
    bomb += "]\n";
  }
  std::string copies = "a: &a \"" + std::string(500000, 'x') + "\"\nb: [*a";
  for (int i = 0; i < 1000; ++i) copies += ", *a";
  std::string indented, dashes;
  for (int i = 0; i < 200; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (int i = 0; i < 5000; ++i) dashes += "- ";
  const std::vector<std::string> documents = {bomb, copies + "]", std::string(100000, '['), std::string(100000, '{'), indented, dashes,
                                              std::string(2 << 20, 'x')};
  for (const std::string& text : documents) {
    const auto document = parse_yaml(text, "f.yaml");
    ASSERT_FALSE(document) << text.substr(0, 40);
    EXPECT_EQ(document.error().kind, ErrorKind::contract);
    EXPECT_LT(to_text(document.error()).size(), 400u);
  }
}

constexpr const char* kSchema = R"({
  "type": "object", "required": ["name"], "additionalProperties": false,
  "properties": {
    "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]*$"},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "ratio": {"type": "number", "exclusiveMinimum": 0},
    "kind": {"enum": ["input", "output"]},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "#/definitions/item"}},
    "either": {"errorMessage": "must be a number or a pair", "anyOf": [{"type": "number"}, {"type": "array", "minItems": 2}]}
  },
  "definitions": {"item": {"type": "object", "additionalProperties": false, "properties": {"deep": {"type": ["string", "boolean"]}}}}
})";

TEST(Schema, OneClearError) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"size: 1", "f.yaml:1:1: error(contract): the key \"name\" is missing"},
      {"name: ab\nsise: 1", "f.yaml:2:7: error(contract): sise: unknown key \"sise\"\n  hint: did you mean \"size\"?"},
      {"name: 12", "f.yaml:1:7: error(contract): name: must be text, not a whole number"},
      {"name: a", "f.yaml:1:7: error(contract): name: needs at least 2 characters"},
      {"name: abcdefg", "f.yaml:1:7: error(contract): name: has 7 characters, more than 5"},
      {"name: A1", "f.yaml:1:7: error(contract): name: \"A1\" does not match ^[a-z]*$"},
      {"name: ab\nsize: 0", "f.yaml:2:7: error(contract): size: 0 is below 1"},
      {"name: ab\nsize: 10", "f.yaml:2:7: error(contract): size: 10 is above 9"},
      {"name: ab\nsize: 1.5", "f.yaml:2:7: error(contract): size: must be a whole number, not a number"},
      {"name: ab\nratio: 0", "f.yaml:2:8: error(contract): ratio: 0 must be above 0"},
      {"name: ab\nkind: inputs", "f.yaml:2:7: error(contract): kind: \"inputs\" is not one of input, output\n  hint: did you mean \"input\"?"},
      {"name: ab\nlist: []", "f.yaml:2:7: error(contract): list: must not be empty"},
      {"name: ab\nlist: [{}, {}, {}]", "f.yaml:2:7: error(contract): list: has 3 elements, more than 2"},
      {"name: ab\nlist:\n  - {deep: 3}", "f.yaml:3:12: error(contract): list/0/deep: must be text or true or false, not a whole number"},
      {"name: ab\nlist:\n  - {dep: x}", "f.yaml:3:11: error(contract): list/0/dep: unknown key \"dep\"\n  hint: did you mean \"deep\"?"},
      {"name: ab\neither: x", "f.yaml:2:9: error(contract): either: must be a number or a pair, not \"x\""},
      {"[1]", "f.yaml:1:1: error(contract): must be a map, not a list"},
  };
  for (const auto& [text, expected] : cases) {
    const auto document = parse_yaml(text, "f.yaml");
    HONE_ASSERT_OK(document);
    const auto checked = check_schema(*document, kSchema);
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(to_text(checked.error()), expected);
  }
  const auto good = parse_yaml("name: ab\nlist: [{deep: true}]\neither: [1, 2]", "f.yaml");
  HONE_ASSERT_OK(good);
  HONE_ASSERT_OK(check_schema(*good, kSchema));
}

TEST(Schema, JsonNamesWhatItIs) {
  const auto checked = check_schema(json{{"name", 3}}, kSchema, "the plan");
  ASSERT_FALSE(checked);
  EXPECT_EQ(to_text(checked.error()), "error(contract): the plan: name: must be text, not a whole number");
}

TEST(Schema, LongTextDoesNotReachThePattern) {
  const auto checked = check_schema(json{{"name", std::string(1 << 20, 'a')}}, kSchema, "the plan");
  ASSERT_FALSE(checked);
  EXPECT_EQ(to_text(checked.error()), "error(contract): the plan: name: has more than 4096 characters");
}

TEST(Schema, ABrokenSchemaIsOurFault) {
  HONE_EXPECT_ERROR(check_schema(json::object(), "{", "x"), internal);
  HONE_EXPECT_ERROR(check_schema(json::object(), R"({"type": 3})", "x"), internal);
}

}  // namespace
}  // namespace hone
