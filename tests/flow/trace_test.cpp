#include "flow/trace.h"

#include <gtest/gtest.h>

#include <fstream>

#include "testing/testing.h"

namespace hone {
namespace {

TEST(Trace, IsBoundedInSizeAndNumber) {
  const fs::path folder = testing::scratch("trace") / "trace";
  auto trace = Trace::open(folder, {.file_bytes = 2000, .files = 3});
  HONE_ASSERT_OK(trace);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(trace->write({{"kind", "text"}, {"n", i}, {"text", std::string(100, 'x')}}));
  const auto files = trace_files(folder);
  EXPECT_EQ(files.size(), 3u);
  for (const fs::path& each : files) EXPECT_LE(fs::file_size(each), 2000u);
  const auto last = last_events(folder, 5);
  ASSERT_EQ(last.size(), 5u);
  EXPECT_EQ(last[0]["n"], 195);
  EXPECT_EQ(last[4]["n"], 199);
}

TEST(Trace, GoesOnAfterAKillInTheMiddleOfALine) {
  const fs::path folder = testing::scratch("torn") / "trace";
  {
    auto trace = Trace::open(folder);
    EXPECT_TRUE(trace->write({{"kind", "begin"}}));
  }
  std::ofstream(trace_files(folder).back(), std::ios::app) << "{\"kind\":\"te";
  auto trace = Trace::open(folder);
  HONE_ASSERT_OK(trace);
  EXPECT_TRUE(trace->write({{"kind", "end"}}));
  EXPECT_EQ(trace_files(folder).size(), 1u);
  const auto events = last_events(folder, 9);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1]["kind"], "end");
}

TEST(Trace, AHugeEventIsLeftOutOfItsText) {
  const fs::path folder = testing::scratch("huge") / "trace";
  auto trace = Trace::open(folder);
  EXPECT_TRUE(trace->write({{"kind", "text"}, {"text", std::string(1 << 20, 'x')}, {"bytes", std::string("\xff\xfe")}}));
  EXPECT_LT(fs::file_size(trace_files(folder)[0]), 1000u);
  EXPECT_EQ(last_events(folder, 1).size(), 1u);
}

}  // namespace
}  // namespace hone
