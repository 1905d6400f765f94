#include "mcp/calls.h"

#include <gtest/gtest.h>

#include <future>

namespace hone::mcp {
namespace {

TEST(Calls, MeasurementsRunOneAfterTheOtherBesideEverythingElse) {
  std::atomic<int> inside{0}, most{0}, done{0};
  std::promise<void> looked, hold, last;
  Calls calls;                                  // last: its threads use the rest
  const auto measure = [&](const std::atomic<bool>&) -> Calls::Reply {
    most.store(std::max(most.load(), ++inside));
    std::this_thread::yield();
    --inside;
    ++done;
    return {};
  };
  ASSERT_EQ(calls.start("first", true, [held = hold.get_future().share()](const std::atomic<bool>&) { return held.wait(), Calls::Reply(); }), Calls::Started::yes);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(calls.start("m" + std::to_string(i), true, measure), Calls::Started::yes);
  ASSERT_EQ(calls.start("look", false, [&](const std::atomic<bool>&) { return [&] { looked.set_value(); }; }), Calls::Started::yes);
  looked.get_future().wait();                   // although a measurement runs
  EXPECT_EQ(done.load(), 0);
  hold.set_value();
  ASSERT_EQ(calls.start("last", true, [&](const std::atomic<bool>&) { return [&] { last.set_value(); }; }), Calls::Started::yes);
  last.get_future().wait();
  EXPECT_EQ(done.load(), 5);
  EXPECT_EQ(most.load(), 1);
}

TEST(Calls, AreCancelledByKeyRunningOrWaiting) {
  std::promise<void> began, ended;
  std::promise<bool> waited;
  Calls calls;
  ASSERT_EQ(calls.start("1", true, [&](const std::atomic<bool>& cancel) {
    began.set_value();
    while (!cancel.load()) std::this_thread::yield();
    return [&] { ended.set_value(); };
  }), Calls::Started::yes);
  ASSERT_EQ(calls.start("2", true, [&](const std::atomic<bool>& cancel) { return [&] { waited.set_value(cancel.load()); }; }), Calls::Started::yes);
  began.get_future().wait();
  EXPECT_EQ(calls.start("1", false, [](const std::atomic<bool>&) { return Calls::Reply(); }), Calls::Started::key_in_use);
  EXPECT_FALSE(calls.cancel("3"));
  EXPECT_TRUE(calls.cancel("2"));
  EXPECT_TRUE(calls.cancel("1"));
  ended.get_future().wait();
  EXPECT_TRUE(waited.get_future().get());
}

TEST(Calls, AKeyIsFreeWhenTheAnswerIsHeard) {
  Calls calls;
  for (int i = 0; i < 2000; ++i) {
    std::promise<void> heard;
    ASSERT_EQ(calls.start("1", false, [&](const std::atomic<bool>&) { return [&] { heard.set_value(); }; }), Calls::Started::yes) << i;
    heard.get_future().wait();
  }
}

TEST(Calls, StoppingCancelsEverythingAndTakesNoMore) {
  std::atomic<int> cancelled{0};
  Calls calls;
  for (int i = 0; i < 20; ++i)
    calls.start(std::to_string(i), i % 2 == 0, [&](const std::atomic<bool>& cancel) {
      while (!cancel.load()) std::this_thread::yield();
      return [&] { ++cancelled; };
    });
  calls.stop();
  EXPECT_EQ(cancelled.load(), 20);
  EXPECT_EQ(calls.start("late", false, [](const std::atomic<bool>&) { return Calls::Reply(); }), Calls::Started::too_many);
}

}  // namespace
}  // namespace hone::mcp
