// What a person can do while a launcher, here a process of its own, works.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "flow/fake_flow.h"
#include "flow/live.h"
#include "run/summary.h"
#include "testing/testing.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HONE_TESTS_UNDER_TSAN
#endif
#endif

namespace hone {
namespace {

using nlohmann::json;
using testing::FlowTest;
using testing::Hands;
using testing::said_done;

class Person : public FlowTest {
 protected:
  void SetUp() override {
#ifdef HONE_TESTS_UNDER_TSAN
    GTEST_SKIP() << "skipped: ThreadSanitizer allows no threads after fork";
#endif
  }
  void launch(const FlowOptions& options) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::alarm(60);
    const auto end = work(options);
    ::_exit(end ? end->exit : 99);
  }
  // Until it holds, or the test fails.
  void until(const std::function<bool()>& holds, const char* what) {
    for (const double end = now_s() + 30; now_s() < end; std::this_thread::sleep_for(std::chrono::milliseconds(10)))
      if (holds()) return;
    FAIL() << "never: " << what;
  }
  json ask(const json& request) {
    std::optional<json> answer;
    until([&] {
      const auto got = ask_launcher(run, request);
      if (got && *got) answer = **got;
      return answer.has_value();
    }, "an answer");
    return answer.value_or(json());
  }
  int wait_for_the_end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  bool in_turn(int turn) {
    const Turns turns = progress().turns;
    return turns.open() && turns.all.back().turn == turn;
  }
  FlowOptions goal(const std::string& budget) {
    FlowOptions made = options("goal", {"command:agent"}, budget);
    made.target = 1.5;
    made.breakers.no_progress = 0;
    return made;
  }
  pid_t pid_ = 0;
};

TEST_F(Person, StopEndsTheTurnAndKeepsWhatIsThere) {
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("mine", "speedup 1.2");
    hands.wait_for_the_end();
    return said_done();
  };
  launch(goal("turns=5"));
  until([&] { return !frontier().empty() && ask({{"do", "status"}})["live"]["queue"] == 0; }, "something retained");
  const json live = ask({{"do", "status"}})["live"];
  EXPECT_EQ(live["schema"], "hone.live/1");
  EXPECT_EQ(live["agents"][0]["state"], "working");
  EXPECT_EQ(live["agents"][0]["last"]["kind"], "started");
  const auto summary = summarize(run);
  HONE_ASSERT_OK(summary);
  EXPECT_EQ(status_json(*summary, live)["turn"]["turn"], 1);
  EXPECT_NE(status_text(*summary, live).find("working since"), std::string::npos) << status_text(*summary, live);
  ask({{"do", "stop"}});
  EXPECT_EQ(wait_for_the_end(), 4);
  EXPECT_EQ(progress().ended->data["reason"], "stopped");
  EXPECT_EQ(progress().turns.all[0].cause, "stopped");
  EXPECT_FALSE(progress().turns.all[0].counted);
  EXPECT_EQ(frontier().size(), 1u);
}

TEST_F(Person, SteerReachesTheNextTurnAlone) {
  scripts["agent"] = [&](const Hands& hands) {
    const auto word = hands.turn.prompt.find("try wider tiles");
    (void)hands.ask({{"do", "finding"}, {"text", word == std::string::npos ? "not told" : "told"}});
    if (progress().turns.all.size() == 1)
      while (progress().turns.steers.empty() && !hands.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return said_done();
  };
  launch(goal("turns=3"));
  until([&] { return in_turn(1); }, "the first turn");
  ask({{"do", "steer"}, {"text", "try wider tiles"}});
  EXPECT_EQ(wait_for_the_end(), 4);
  const auto findings = progress().turns.findings;
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].text, "not told");
  EXPECT_EQ(findings[1].text, "told");
  EXPECT_EQ(findings[2].text, "not told");
  EXPECT_TRUE(progress().turns.waiting_steers().empty());
}

TEST_F(Person, PauseHoldsTheNextTurnAndTheClock) {
  scripts["agent"] = [&](const Hands&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return said_done();
  };
  launch(goal("turns=3"));
  until([&] { return in_turn(1); }, "the first turn");
  EXPECT_EQ(ask({{"do", "pause"}})["paused"], true);
  until([&] { return ask({{"do", "status"}})["live"]["state"] == "paused"; }, "the pause");
  const std::size_t turns = progress().turns.all.size();
  const double elapsed = ask({{"do", "status"}})["live"]["elapsed_s"];
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(progress().turns.all.size(), turns);
  EXPECT_DOUBLE_EQ(ask({{"do", "status"}})["live"]["elapsed_s"].get<double>(), elapsed);
  EXPECT_TRUE(progress().turns.paused);
  ask({{"do", "pause"}, {"off", true}});
  EXPECT_EQ(wait_for_the_end(), 4);
  EXPECT_EQ(progress().turns.counted(), 3);
}

TEST_F(Person, PauseNowCutsTheTurnAndItIsTakenAgain) {
  scripts["agent"] = [&](const Hands& hands) {
    if (progress().turns.all.size() == 1) hands.wait_for_the_end();
    return said_done();
  };
  launch(goal("turns=1"));
  until([&] { return in_turn(1); }, "the first turn");
  ask({{"do", "pause"}, {"now", true}});
  until([&] { return !progress().turns.open(); }, "the cut");
  ask({{"do", "pause"}, {"off", true}});
  EXPECT_EQ(wait_for_the_end(), 4);
  ASSERT_EQ(progress().turns.all.size(), 2u);
  EXPECT_EQ(progress().turns.all[0].cause, "paused");
  EXPECT_EQ(progress().turns.all[1].attempt, 2);
}

TEST_F(Person, ABenchOfTheirOwnIsNotTheAgents) {
  scripts["agent"] = [&](const Hands& hands) {
    hands.wait_for_the_end();
    return said_done();
  };
  launch(goal("turns=1,evaluations=1"));
  until([&] { return in_turn(1); }, "the first turn");
  const Turn none;
  const Hands mine(run, none);
  const json answer = ask({{"do", "bench"}, {"candidate", mine.write("p", "speedup 1.3").string()}});
  EXPECT_EQ(answer["retained"], "p");
  EXPECT_EQ(progress().benches.size(), 1u);
  EXPECT_TRUE(progress().evaluations.empty());
  ask({{"do", "frontier_drop"}, {"name", "p"}, {"why", "no"}});
  EXPECT_TRUE(frontier().empty());
  ask({{"do", "frontier_add"}, {"candidate", (run.scratch() / "p").string()}, {"family", "mine"}});
  EXPECT_EQ(frontier().at(0).family, "mine");
  ask({{"do", "stop"}});
  EXPECT_EQ(wait_for_the_end(), 4);
}

TEST_F(Person, AKilledLauncherIsResumedWithItsTimeAndItsTurn) {
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("mine", "speedup 1.2");
    hands.turn.on_event({EventKind::usage, 0, {}, {}, {7, std::nullopt, 5, 0.5}});
    if (progress().turns.all.size() == 1) hands.wait_for_the_end();
    return said_done();
  };
  launch(goal("turns=1"));
  until([&] {
    const auto text = read_file(live_file(run));
    return text && text->find("0.5") != std::string::npos && text->find("\"output_tokens\": 5") != std::string::npos;
  }, "the use of the turn in live.json");
  ::kill(pid_, SIGKILL);
  EXPECT_EQ(wait_for_the_end(), -SIGKILL);
  EXPECT_EQ(summarize(run)->state, "interrupted");
  const double before = left_live(run, progress().elapsed_s)->elapsed_s;
  const auto end = work(goal("turns=1"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "budget: turns");
  const Turns turns = progress().turns;
  ASSERT_EQ(turns.all.size(), 2u);
  EXPECT_EQ(turns.all[0].end, "cut");
  EXPECT_EQ(turns.all[0].spent.tokens(), 12);
  EXPECT_EQ(turns.all[1].turn, 1);
  EXPECT_EQ(turns.all[1].attempt, 2);
  EXPECT_GE(progress().elapsed_s, before);
  EXPECT_EQ(progress().evaluations.size(), 1u);     // measured before, answered from the record
}

}  // namespace
}  // namespace hone
