#include "server/queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "testing/testing.h"

namespace hone::server {
namespace {

std::string order(Queue& queue) {
  std::string out;
  while (const auto next = queue.pop()) out += next->job + " ";
  return out;
}

TEST(Queue, FirstInFirstOut) {
  Queue queue;
  for (const char* job : {"a", "b", "c"}) queue.push({job, "t", 0, {}});
  EXPECT_EQ(order(queue), "a b c ");
}

TEST(Queue, HigherPriorityFirst) {
  Queue queue;
  queue.push({"low", "t", -1, {}});
  queue.push({"normal", "t", 0, {}});
  queue.push({"high", "u", 5, {}});
  EXPECT_EQ(queue.ahead_of("low"), 2u);
  EXPECT_EQ(order(queue), "high normal low ");
}

TEST(Queue, TokensTakeTurns) {
  Queue queue;
  for (const char* job : {"a1", "a2", "a3"}) queue.push({job, "a", 0, {}});
  for (const char* job : {"b1", "b2"}) queue.push({job, "b", 0, {}});
  std::string out;
  while (const auto next = queue.pop()) {
    out += next->job + " ";
    queue.finished(next->token);
  }
  EXPECT_EQ(out, "a1 b1 a2 b2 a3 ");
}

TEST(Queue, ATokenWithManyRunningWaits) {
  Queue queue;
  for (const char* job : {"a1", "a2"}) queue.push({job, "a", 0, {}});
  EXPECT_EQ(queue.pop()->job, "a1");
  queue.push({"b1", "b", 0, {}});
  EXPECT_EQ(queue.pop()->job, "b1") << "a has one running";
  EXPECT_EQ(queue.pop()->job, "a2");
}

TEST(Queue, ALimitHoldsJobsBackAndNotOthers) {
  Queue queue;
  queue.limit_running("a", 1);
  for (const char* job : {"a1", "a2"}) queue.push({job, "a", 3, {}});
  queue.push({"b1", "b", 0, {}});
  EXPECT_EQ(queue.pop()->job, "a1");
  EXPECT_EQ(queue.pop()->job, "b1");
  EXPECT_FALSE(queue.pop());
  queue.finished("a");
  EXPECT_EQ(queue.pop()->job, "a2");
}

TEST(Queue, WhatWasRunningComesFirstAgain) {
  Queue queue;
  queue.push({"new", "a", 0, {}});
  queue.push_front({"old", "a", 0, {}});
  EXPECT_EQ(order(queue), "old new ");
}

TEST(Queue, FullForAllAndForOne) {
  Queue queue({.jobs = 3, .jobs_of_token = 2, .running_of_token = 1});
  queue.push({"a1", "a", 0, {}});
  HONE_ASSERT_OK(queue.room_for("a"));
  queue.push({"a2", "a", 0, {}});
  HONE_EXPECT_ERROR(queue.room_for("a"), quota);
  HONE_ASSERT_OK(queue.room_for("b"));
  queue.push({"b1", "b", 0, {}});
  HONE_EXPECT_ERROR(queue.room_for("b"), unavailable);
  EXPECT_TRUE(queue.remove("a2"));
  EXPECT_FALSE(queue.remove("a2"));
  HONE_ASSERT_OK(queue.room_for("a"));
}

TEST(Queue, OnlyThoseThatWaitedTooLongAreTaken) {
  Queue queue;
  queue.push({"patient", "t", 0, {}});
  queue.push({"soon", "t", 0, 5.0});
  queue.push({"later", "t", 0, 9.0});
  const auto expired = queue.take_expired(5.0);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].job, "soon");
  EXPECT_EQ(queue.waiting(), 2u);
  EXPECT_EQ(order(queue), "patient later ");
}

// Whatever happens: nothing is lost or doubled, limits hold, and the position that is told comes true.
TEST(Queue, Properties) {
  EXPECT_TRUE(rc::check("a queue hands out each job once", [] {
    Queue queue({.jobs = 1000, .jobs_of_token = 1000, .running_of_token = 3});
    std::set<std::string> waiting, handed;
    std::map<std::string, std::size_t> running;
    const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(rc::gen::inRange(0, 5), rc::gen::inRange(0, 12)));
    int made = 0;
    for (const auto& [what, which] : steps) {
      const std::string token = std::string(1, static_cast<char>('a' + which % 3));
      if (what < 2) {
        const std::string job = token + std::to_string(made++);
        queue.push({job, token, which / 4, {}});
        waiting.insert(job);
      } else if (what == 2 && running[token] > 0) {
        queue.finished(token);
        --running[token];
      } else if (what == 3 && !waiting.empty()) {
        const std::string job = *std::next(waiting.begin(), which % static_cast<int>(waiting.size()));
        RC_ASSERT(queue.remove(job));
        waiting.erase(job);
      } else if (const auto next = queue.pop()) {
        RC_ASSERT(waiting.erase(next->job) == 1u);
        RC_ASSERT(handed.insert(next->job).second);
        RC_ASSERT(++running[next->token] <= 3u);
      }
      RC_ASSERT(queue.waiting() == waiting.size());
    }
    for (const std::string& job : waiting) RC_ASSERT(*queue.ahead_of(job) < waiting.size());
  }));
}

// A job that is being compiled goes on waiting: it has its place, can be taken out, and no device gets it before.
TEST(Queue, CompilesWhileItWaits) {
  Queue queue;
  queue.push({.job = "slow", .token = "a", .needs = Needs::compiler_then_device});
  queue.push({.job = "next", .token = "a", .needs = Needs::compiler_then_device});
  queue.push({.job = "only", .token = "b", .needs = Needs::compiler});
  EXPECT_FALSE(queue.pop());
  EXPECT_EQ(queue.pop(Needs::compiler)->job, "only");
  EXPECT_EQ(queue.begin_compiling()->job, "slow");
  EXPECT_EQ(queue.begin_compiling()->job, "next");
  EXPECT_FALSE(queue.begin_compiling());
  EXPECT_EQ(queue.ahead_of("next"), 1u);
  queue.compiled("next");
  EXPECT_EQ(queue.pop()->job, "next");
  EXPECT_TRUE(queue.remove("slow"));
  queue.compiled("slow");
  EXPECT_FALSE(queue.pop());
  EXPECT_EQ(queue.waiting(), 0u);
}

}  // namespace
}  // namespace hone::server
