#include "base/text.h"

#include <gtest/gtest.h>

#include "testing/testing.h"

namespace hone {
namespace {

TEST(Text, DurationsInEveryForm) {
  const std::pair<const char*, double> cases[] = {
      {"90", 90},     {"90s", 90},          {"1.5h", 5400},      {"1h30m", 5400},      {"PT6H", 21600},
      {"pt6h", 21600}, {"P1DT2H", 93600},   {"00:01:30", 90},    {"01:00:00.5", 3600.5}, {"2d", 172800},
      {"0", 0},       {"1h0m5s", 3605},     {"PT0.5S", 0.5}};
  for (const auto& [text, seconds] : cases) {
    const auto parsed = parse_duration(text);
    HONE_ASSERT_OK(parsed);
    EXPECT_DOUBLE_EQ(*parsed, seconds) << text;
  }
}

TEST(Text, DurationsThatAreNone) {
  for (const char* text : {"", "s", "h", "-1", "+1", "1e3", "1e3s", "inf", "nan", "1 h", "1h 30m", "30m1h", "1h1h", "1m30", "P", "PT", "P6H",
                           "PT1D", "1:2", "1:60:00", "1:2:60", "1.5:00:00", "::", "1..5s", "1x", "99999999999999999999", "0x10", "1h30m\n"})
    HONE_EXPECT_ERROR(parse_duration(text), usage);
  HONE_EXPECT_ERROR(parse_duration(std::string(100000, '9')), usage);
  HONE_EXPECT_ERROR(parse_duration(std::string_view("1\0", 2)), usage);
}

TEST(Text, Sizes) {
  const std::pair<const char*, std::uint64_t> cases[] = {{"1048576", 1048576}, {"64K", 65536},  {"1GiB", std::uint64_t{1} << 30},
                                                         {"1GB", 1000000000},  {"1.5k", 1536}, {"0", 0},
                                                         {"10b", 10},          {"2TB", 2000000000000}};
  for (const auto& [text, bytes] : cases) {
    const auto parsed = parse_size(text);
    HONE_ASSERT_OK(parsed);
    EXPECT_EQ(*parsed, bytes) << text;
  }
  for (const char* text : {"", "K", "-1", "1KK", "1 G", "9999999999TiB", "nan", "1e9"}) HONE_EXPECT_ERROR(parse_size(text), usage);
}

TEST(Text, Ratios) {
  EXPECT_DOUBLE_EQ(parse_ratio("3").value(), 3);
  EXPECT_DOUBLE_EQ(parse_ratio("1.5x").value(), 1.5);
  for (const char* text : {"", "x", "0", "0x", "-1", "1.5xx", "inf", "nan", "1,5"}) HONE_EXPECT_ERROR(parse_ratio(text), usage);
}

TEST(Text, PairsNameTheBadKey) {
  const std::vector<std::string> known{"evaluations", "time", "cost"};
  const auto parsed = parse_pairs("evaluations=60,time=120s", known);
  HONE_ASSERT_OK(parsed);
  EXPECT_EQ(parsed->at("time"), "120s");
  EXPECT_EQ(parsed->size(), 2u);
  const auto typo = parse_pairs("evalautions=60", known);
  HONE_EXPECT_ERROR(typo, usage);
  EXPECT_NE(typo.error().hint.find("evaluations"), std::string::npos);
  for (const char* text : {"", "time", "time=", "=5", "time=1,", ",time=1", "time=1,time=2", "a=b"}) HONE_EXPECT_ERROR(parse_pairs(text, known), usage);
}

TEST(Text, FormattedDurations) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(4.5e-8), "45 ns");
  EXPECT_EQ(format_duration(1.5e-5), "15 us");
  EXPECT_EQ(format_duration(0.45), "450 ms");
  EXPECT_EQ(format_duration(12.34), "12.3 s");
  EXPECT_EQ(format_duration(59.99), "1m");
  EXPECT_EQ(format_duration(90), "1m30s");
  EXPECT_EQ(format_duration(5400), "1h30m");
  EXPECT_EQ(format_duration(86400 * 2 + 3600), "2d1h");
}

TEST(Text, FormattedBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16.0 EiB");
}

TEST(Text, AShellTakesAWordAsItIs) {
  EXPECT_EQ(shell_word("/tmp/runs/first-1"), "/tmp/runs/first-1");
  EXPECT_EQ(shell_word("o dd n\u00e9"), "'o dd n\u00e9'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Text, NearestSuggestsOnlyWhatIsNear) {
  const std::vector<std::string> verbs{"doctor", "task", "bench", "verify", "init", "run", "status", "frontier", "report", "completion"};
  EXPECT_EQ(nearest("bnech", verbs), "bench");
  EXPECT_EQ(nearest("DOCTOR", verbs), "doctor");
  EXPECT_EQ(nearest("frontiers", verbs), "frontier");
  EXPECT_EQ(nearest("rnu", verbs), "run");
  EXPECT_EQ(nearest("xyzzy", verbs), "");
  EXPECT_EQ(nearest("", verbs), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), verbs), "");
  EXPECT_EQ(nearest("x", {"y"}), "");
}

}  // namespace
}  // namespace hone
