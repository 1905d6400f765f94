#include "mcp/tool.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

TEST(Answer, IsShortWhateverTheToolSaid) {
  json many = json::object();
  for (int i = 0; i < 3000; ++i) many[std::to_string(i)] = i;
  const json facts[] = {{{"a", std::string(1 << 20, 'x')}},
                        {{"rows", json::array()}, {"text", std::string(9000, 'y')}},
                        {{"many", many}, {"name", "kept"}},
                        {{"deep", {{"er", {{"list", std::vector<std::string>(500, std::string(500, 'z'))}}}}}}};
  for (const json& each : facts) {
    const json result = result_of(Answer{std::string(1 << 20, 't'), each});
    EXPECT_LT(result.dump().size(), 10000u);
    EXPECT_EQ(result["structuredContent"]["cut"], true);
    for (const auto& [key, value] : each.items()) EXPECT_EQ(result["structuredContent"][key].type(), value.type()) << key;
  }
  const json small = {{"a", {1, 2, 3}}};
  EXPECT_EQ(result_of(Answer{"t", small})["structuredContent"], small);
}

TEST(Answer, IsCutBetweenCharacters) {
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xe2\x82\xac";
  for (std::size_t limit = 20; limit < 40; ++limit) {
    const std::string cut = shortened(euros, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_TRUE(is_utf8(cut)) << limit;
  }
}

TEST(Answer, AFaultHasKindMessageAndHint) {
  const json result = result_of(make_error(ErrorKind::unavailable, "nobody answers").with_hint("start `hone serve`"));
  EXPECT_EQ(result["isError"], true);
  EXPECT_EQ(result["structuredContent"]["error"]["kind"], "unavailable");
  EXPECT_EQ(result["structuredContent"]["error"]["hint"], "start `hone serve`");
  EXPECT_NE(result["content"][0]["text"].get<std::string>().find("nobody answers"), std::string::npos);
}

}  // namespace
}  // namespace hone::mcp
