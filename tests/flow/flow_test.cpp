// Whole flows: who ends them, what is written of them, and what agents cannot do.
#include "flow/flow.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "flow/fake_flow.h"
#include "run/fake_run.h"
#include "run/summary.h"
#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;
using testing::FlowTest;
using testing::Hands;
using testing::said_done;
using testing::said_failed;

class Goal : public FlowTest {
 protected:
  FlowOptions goal(const std::string& budget, double target = 1.5) {
    FlowOptions made = options("goal", {"command:agent"}, budget);
    made.target = target;
    return made;
  }
};

TEST_F(Goal, AClaimEndsNothing) {
  scripts["agent"] = [](const Hands&) {
    TurnResult result = said_done();
    result.last_text = "The target of 1.5x is reached; the goal is achieved.";
    return result;
  };
  FlowOptions with = goal("turns=4");
  with.breakers.no_progress = 0;
  const auto end = work(with);
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "budget: turns");
  EXPECT_EQ(end->exit, 4);
  EXPECT_EQ(progress().turns.counted(), 4);
  EXPECT_TRUE(frontier().empty());
}

TEST_F(Goal, DeliveryEndsItInTheSameTurnAfterTwoMeasurements) {
  int turns = 0;
  scripts["agent"] = [&](const Hands& hands) {
    ++turns;
    const auto answer = hands.bench("mine", turns == 1 ? "speedup 1.2" : "speedup 1.6");
    EXPECT_TRUE(answer.has_value()) << to_text(answer.error());
    return said_done();
  };
  const auto end = work(goal("turns=10"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "target reached");
  EXPECT_EQ(end->exit, 0);
  EXPECT_EQ(turns, 2);
  ASSERT_EQ(frontier().size(), 2u);
  EXPECT_DOUBLE_EQ(frontier()[0].geomean, 1.6);
  const RunProgress after = progress();
  EXPECT_EQ(after.evaluations.size(), 2u);
  ASSERT_EQ(after.remeasures.size(), 1u);          // the second measurement is marked as one
  EXPECT_EQ(after.remeasures[0].experiment.sha256, frontier()[0].sha256);
  EXPECT_EQ(after.evaluations[1].by, "agent");
  EXPECT_EQ(after.evaluations[1].turn, 2);
}

TEST_F(Goal, AnAgentThatGoesOnAfterDeliveryIsEnded) {
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("mine", "speedup 1.6");
    hands.wait_for_the_end();
    return said_failed("interrupted");
  };
  const auto end = work(goal("turns=10"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "target reached");
  ASSERT_EQ(progress().turns.all.size(), 1u);
  EXPECT_EQ(progress().turns.all[0].cause, "target reached");
  EXPECT_FALSE(progress().turns.all[0].failed);
}

TEST_F(Goal, OneLuckyMeasurementIsNotEnough) {
  // 1.5x once: the source changes between the looks, so the second one has other bytes; and the first is measured again.
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("mine", "wrong speedup 9");
    (void)hands.bench("other", "speedup 1.49");
    return said_done();
  };
  FlowOptions with = goal("turns=2");
  const auto end = work(with);
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->exit, 4);
  EXPECT_TRUE(progress().remeasures.empty());
}

TEST_F(Goal, TheSameBytesAreMeasuredOnceAndAnsweredFromTheRecord) {
  scripts["agent"] = [&](const Hands& hands) {
    const auto first = hands.bench("a", "speedup 1.2"), again = hands.bench("a", "speedup 1.2"), copy = hands.bench("b", "speedup 1.2");
    EXPECT_FALSE((*first)["known"]);
    EXPECT_TRUE((*again)["known"]);
    EXPECT_TRUE((*copy)["known"]);
    EXPECT_EQ((*again)["row"], (*first)["row"]);
    EXPECT_EQ((*again)["report"]["geomean"], 1.2);
    const auto bad = hands.bench("c", "wrong"), same = hands.bench("c", "wrong");
    EXPECT_EQ((*same)["report"]["passed"], 1);
    return said_done();
  };
  HONE_ASSERT_OK(work(goal("turns=1")));
  EXPECT_EQ(evaluator.judged().size(), 2u);
  EXPECT_EQ(progress().evaluations.size(), 2u);
}

TEST_F(Goal, SpentEvaluationsEndTheTurnAndTheRun) {
  std::vector<std::string> kinds;
  scripts["agent"] = [&](const Hands& hands) {
    for (int i = 0; i < 5; ++i) {
      const auto answer = hands.bench(fmt::format("c{}", i), fmt::format("speedup 0.{}", i + 1));
      kinds.push_back(answer ? "measured" : std::string(name_of(answer.error().kind)));
    }
    hands.wait_for_the_end();
    return said_done();
  };
  const auto end = work(goal("evaluations=3"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "budget: evaluations");
  EXPECT_EQ(end->exit, 4);
  EXPECT_EQ(kinds, (std::vector<std::string>{"measured", "measured", "measured", "budget", "budget"}));
  EXPECT_EQ(evaluator.judged().size(), 3u);
  // A resumed run judges nothing and starts no agent; a raised budget goes on.
  const std::size_t turns = progress().turns.all.size();
  EXPECT_EQ(work(goal("evaluations=3"))->exit, 4);
  EXPECT_EQ(progress().turns.all.size(), turns);
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("d", "speedup 0.9");
    return said_done();
  };
  EXPECT_EQ(work(goal("evaluations=4"))->reason, "budget: evaluations");
  EXPECT_EQ(progress().evaluations.size(), 4u);
}

TEST_F(Goal, TimeCutsATurnThatSaysItFinished) {
  scripts["agent"] = [&](const Hands& hands) {
    hands.wait_for_the_end();
    TurnResult result = said_done();                // a program that answers a cancel as an end, with no use at all
    result.usage = {0, 0, 0, std::nullopt};
    return result;
  };
  const auto end = work(goal("time=0.5s,tokens=100"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "budget: duration");
  EXPECT_EQ(end->exit, 4);
  const Turns turns = progress().turns;
  ASSERT_EQ(turns.all.size(), 1u);
  EXPECT_EQ(turns.all[0].end, "cancelled");
  EXPECT_EQ(turns.all[0].cause, "budget: duration");
  EXPECT_FALSE(turns.all[0].spent.tokens().has_value());
  EXPECT_EQ(turns.unknown_tokens(), 1);
}

TEST_F(Goal, TimeCutsAMeasurementToo) {
  scripts["agent"] = [&](const Hands& hands) {
    const auto answer = hands.bench("endless", "slow");
    HONE_EXPECT_ERROR(answer, cancelled);
    return said_done();
  };
  EXPECT_EQ(work(goal("time=0.5s"))->reason, "budget: duration");
  EXPECT_TRUE(progress().evaluations.empty());
  EXPECT_TRUE(progress().open_starts.empty());
  EXPECT_TRUE(frontier().empty());
}

TEST_F(Goal, TokensAndCostAddUpOverSessionsAndUnknownIsNotNought) {
  int turns = 0;
  scripts["agent"] = [&](const Hands& hands) {
    ++turns;
    (void)hands.bench(fmt::format("c{}", turns), fmt::format("speedup 0.{}", turns));
    TurnResult result = said_done();
    if (turns != 2) result.usage = {10, std::nullopt, 30, 0.25};
    return result;
  };
  EXPECT_EQ(work(goal("turns=2,tokens=100"))->reason, "budget: turns");
  EXPECT_EQ(progress().turns.tokens(), 40);
  EXPECT_EQ(progress().turns.unknown_tokens(), 1);
  EXPECT_EQ(work(goal("turns=9,tokens=100"))->reason, "budget: tokens");
  EXPECT_EQ(progress().turns.tokens(), 120);
  EXPECT_DOUBLE_EQ(progress().turns.cost(), 0.75);
  EXPECT_EQ(work(goal("turns=9,cost=0.7"))->reason, "budget: cost");
  EXPECT_EQ(turns, 4);
  EXPECT_NE(spent_text(progress()).find("cost 0.75/0.7 (unknown for 1 turn)"), std::string::npos) << spent_text(progress());
}

TEST_F(Goal, TokensOfTheTurnThatGoesOnCount) {
  scripts["agent"] = [&](const Hands& hands) {
    hands.turn.on_event({EventKind::usage, 0, {}, {}, {50, std::nullopt, 60, std::nullopt}});
    hands.wait_for_the_end();
    TurnResult result = said_done();
    result.usage = {50, std::nullopt, 60, std::nullopt};
    return result;
  };
  EXPECT_EQ(work(goal("tokens=100"))->reason, "budget: tokens");
  EXPECT_EQ(progress().turns.all[0].cause, "budget: tokens");
  EXPECT_EQ(progress().turns.tokens(), 110);
}

TEST_F(Goal, ThreeFailedTurnsInARowEndTheRun) {
  int turns = 0;
  scripts["agent"] = [&](const Hands& hands) {
    if (++turns == 2) {
      (void)hands.bench("x", "speedup 1.1");
      return said_done();
    }
    return said_failed("401 authentication_failed");
  };
  const auto end = work(goal("turns=50"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "repeated failure");
  EXPECT_EQ(end->exit, 3);
  EXPECT_NE(end->why.find("401 authentication_failed"), std::string::npos) << end->why;
  EXPECT_EQ(turns, 5);
  // A resumed run has its own count.
  EXPECT_EQ(work(goal("turns=50"))->reason, "repeated failure");
  EXPECT_EQ(turns, 8);
}

TEST_F(Goal, BreakersAreExplainedAndCanBeSwitchedOff) {
  scripts["agent"] = [](const Hands&) { return said_done(); };
  const auto idle = work(goal("turns=50"));
  EXPECT_EQ(idle->reason, "no progress");
  EXPECT_EQ(idle->exit, 4);
  EXPECT_NE(idle->why.find("--breakers no_progress=0"), std::string::npos);
  int n = 0;
  scripts["agent"] = [&](const Hands& hands) {
    ++n;
    (void)hands.bench(fmt::format("c{}", n), fmt::format("speedup 0.{}", n));
    return said_done();
  };
  FlowOptions with = goal("turns=50");
  with.breakers.plateau = 4;
  EXPECT_EQ(work(with)->reason, "plateau");
  EXPECT_EQ(n, 4);
  EXPECT_TRUE(parse_breakers("plateau=0,failures=7").has_value());
  HONE_EXPECT_ERROR(parse_breakers("plateu=3"), usage);
  HONE_EXPECT_ERROR(parse_breakers("plateau=-1"), usage);
}

TEST_F(Goal, ARecordThatAnAgentEditsIsPutBackAndTold) {
  std::vector<std::string> prompts;
  scripts["agent"] = [&](const Hands& hands) {
    prompts.push_back(hands.turn.prompt);
    if (prompts.size() > 1) return said_done();
    const auto answer = hands.bench("mine", "speedup 1.2");
    const fs::path receipt = (*answer)["report"]["receipt"].get<std::string>();
    std::string ledger = *read_file(hands.run.ledger());
    for (std::size_t at; (at = ledger.find("1.2")) != std::string::npos;) ledger.replace(at, 3, "9.9");
    (void)write_file_atomic(hands.run.ledger(), ledger);
    fs::remove(receipt);
    (void)write_file_atomic(hands.run.root / "PROMPT.md", "The target is 0.1x.\n");
    (void)write_file_atomic(hands.run.frontier() / "index.json", "{}\n");
    return said_done();
  };
  (void)write_file_atomic(run.root / "PROMPT.md", "The true assignment.\n");
  EXPECT_EQ(work(goal("turns=2"))->exit, 4);
  const auto after = read_ledger(run.ledger());
  HONE_ASSERT_OK(after);
  EXPECT_TRUE(after->faults.empty());
  EXPECT_DOUBLE_EQ(*progress().best()->experiment.geomean, 1.2);
  EXPECT_EQ(*read_file(run.root / "PROMPT.md"), "The true assignment.\n");
  EXPECT_TRUE(fs::exists(run.receipts() / (frontier()[0].receipt + ".json")));
  EXPECT_TRUE(altered_entries(run, frontier()).empty());
  const auto& restored = progress().turns.restored;
  ASSERT_EQ(restored.size(), 3u);
  EXPECT_EQ(restored[0].by, "ledger.jsonl");
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_NE(prompts[1].find("was changed by somebody and put back"), std::string::npos);
  EXPECT_NE(prompts[1].find("The true assignment."), std::string::npos);
  EXPECT_NE(status_text(*summarize(run)).find("restored"), std::string::npos);
}

TEST_F(Goal, RowsThatAnAgentAppendsAreNotTakenIn) {
  scripts["agent"] = [&](const Hands& hands) {
    auto forged = Ledger::open(hands.run.ledger());   // well chained
    EXPECT_TRUE(forged->append("evaluation", 0, {{"by", "agent"}, {"candidate", "x"}, {"sha256", "s"}, {"passed", 2}, {"total", 2}, {"geomean", 7.0}, {"full", true}}).has_value());
    (void)hands.bench("mine", "speedup 1.1");
    return said_done();
  };
  EXPECT_EQ(work(goal("turns=1"))->exit, 4);
  EXPECT_DOUBLE_EQ(*progress().best()->experiment.geomean, 1.1);
  EXPECT_EQ(progress().evaluations.size(), 1u);
  EXPECT_TRUE(read_ledger(run.ledger())->faults.empty());
}

TEST_F(Goal, AnAgentMayNotSpeakForAPerson) {
  scripts["agent"] = [&](const Hands& hands) {
    for (const char* wish : {"stop", "pause", "steer"}) HONE_EXPECT_ERROR(hands.ask({{"do", wish}, {"text", "x"}}), forbidden);
    HONE_EXPECT_ERROR(hands.ask({{"do", "win"}}), usage);
    // Nor have the launcher read what is not the run's.
    HONE_EXPECT_ERROR(hands.ask({{"do", "bench"}, {"candidate", (hands.run.root / "receipts").string()}}), forbidden);
    fs::create_directory_symlink("/etc", hands.run.scratch() / "link");
    HONE_EXPECT_ERROR(hands.ask({{"do", "bench"}, {"candidate", (hands.run.scratch() / "link").string()}}), forbidden);
    return said_done();
  };
  EXPECT_EQ(work(goal("turns=1"))->exit, 4);
}

TEST_F(Goal, APartMeasuredIsNoWholeAndSpendsToo) {
  scripts["agent"] = [&](const Hands& hands) {
    const fs::path folder = hands.write("part", "speedup 2");
    const auto part = hands.ask({{"do", "bench"}, {"candidate", folder.string()}, {"workloads", {"w1"}}});
    EXPECT_TRUE(part.has_value());
    EXPECT_TRUE((*part)["report"]["geomean"].is_null());
    return said_done();
  };
  EXPECT_EQ(work(goal("turns=1"))->exit, 4);
  EXPECT_EQ(progress().evaluations.size(), 1u);
  EXPECT_TRUE(frontier().empty());
}

TEST_F(Goal, AMachineThatCannotJudgeBlamesNoCandidate) {
  scripts["agent"] = [&](const Hands& hands) {
    HONE_EXPECT_ERROR(hands.bench("x", "machine"), sandbox_unavailable);
    HONE_EXPECT_ERROR(hands.bench("y", "half a machine"), environment);   // in one workload of two
    return said_done();
  };
  EXPECT_EQ(work(goal("turns=1"))->exit, 4);
  EXPECT_TRUE(progress().evaluations.empty());
  EXPECT_TRUE(progress().open_starts.empty());
  EXPECT_EQ(evaluator.judged().size(), 4u);            // each was tried twice
}

TEST_F(Goal, AProgramThatCannotBeStartedEndsTheRunAtOnce) {
  HONE_EXPECT_ERROR(work(goal("turns=5")), environment);
  EXPECT_EQ(progress().turns.all.size(), 1u);
  ASSERT_TRUE(progress().ended.has_value());
  EXPECT_EQ(progress().ended->data["reason"], "error");
}

TEST_F(Goal, CtrlCKeepsAllAndTheTurnIsTakenAgain) {
  std::atomic<bool> cancel = false;
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("mine", "speedup 1.2");
    cancel = true;
    hands.wait_for_the_end();
    return said_failed("interrupted");
  };
  FlowOptions with = goal("turns=5");
  with.cancel = &cancel;
  const auto end = work(with);
  EXPECT_EQ(end->reason, "cancelled");
  EXPECT_EQ(end->exit, 4);
  EXPECT_EQ(frontier().size(), 1u);
  EXPECT_EQ(progress().turns.counted(), 0);
  cancel = false;
  scripts["agent"] = [&](const Hands& hands) {
    (void)hands.bench("mine", "speedup 1.7");
    return said_done();
  };
  EXPECT_EQ(work(with)->reason, "target reached");
  ASSERT_EQ(progress().turns.all.size(), 2u);
  EXPECT_EQ(progress().turns.all[1].turn, 1);
  EXPECT_EQ(progress().turns.all[1].attempt, 2);
}

TEST_F(Goal, ConcurrentBenchesAreMeasuredOneAtATime) {
  scripts["agent"] = [&](const Hands& hands) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) threads.emplace_back([&, i] { EXPECT_TRUE(hands.bench(fmt::format("c{}", i), fmt::format("speedup 0.{}", i + 1)).has_value()); });
    for (std::thread& each : threads) each.join();
    return said_done();
  };
  EXPECT_EQ(work(goal("turns=1"))->exit, 4);
  EXPECT_EQ(evaluator.most_at_once(), 1);
  EXPECT_EQ(progress().evaluations.size(), 6u);
}

class FlameChase : public FlowTest {};

TEST_F(FlameChase, ChasersAlternateAndEachIsToldWhatTheOtherDid) {
  std::vector<std::string> prompts;
  int n = 0;
  const auto script = [&](const Hands& hands) {
    prompts.push_back(hands.turn.prompt);
    ++n;
    (void)hands.bench(fmt::format("c{}", n), fmt::format("speedup 1.{}", n));
    return said_done();
  };
  scripts["a"] = scripts["b"] = script;
  const auto end = work(options("flame-chase", {"second_chaser=command:b", "command:a"}, "turns=4"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "budget: turns");
  EXPECT_EQ(roles(), (std::vector<std::string>{"first_chaser", "second_chaser", "first_chaser", "second_chaser"}));
  EXPECT_NE(prompts[1].find("you are second_chaser"), std::string::npos);
  EXPECT_NE(prompts[1].find("`c1` 1.100x"), std::string::npos) << prompts[1];
  EXPECT_EQ(progress().evaluations[1].by, "second_chaser");
}

TEST_F(FlameChase, ACutTurnIsRetakenByTheSameChaser) {
  std::atomic<bool> cancel = false;
  scripts["a"] = [&](const Hands& hands) {
    (void)hands.bench("a", "speedup 1.1");
    return said_done();
  };
  scripts["b"] = [&](const Hands& hands) {
    if (frontier().size() < 2) {
      (void)hands.bench("b", "speedup 1.2");
      cancel = true;
      hands.wait_for_the_end();
    }
    return said_done();
  };
  FlowOptions with = options("flame-chase", {"command:a", "command:b"}, "turns=3");
  with.cancel = &cancel;
  EXPECT_EQ(work(with)->reason, "cancelled");
  cancel = false;
  EXPECT_EQ(work(with)->reason, "budget: turns");
  EXPECT_EQ(roles(), (std::vector<std::string>{"first_chaser", "second_chaser", "second_chaser", "first_chaser"}));
  EXPECT_EQ(progress().evaluations.size(), 2u);
}

TEST_F(FlameChase, AFailedTurnGoesToTheOther) {
  scripts["a"] = [&](const Hands&) { return said_failed("no"); };
  scripts["b"] = [&](const Hands& hands) {
    (void)hands.bench("b", "speedup 1.2");
    return said_done();
  };
  EXPECT_EQ(work(options("flame-chase", {"command:a", "command:b"}, "turns=4"))->reason, "budget: turns");
  EXPECT_EQ(roles()[1], "second_chaser");
}

TEST_F(FlameChase, TwoTunersTakeSlicesAndShareWhatIsKnown) {
  testing::fake_candidate(run.scratch(), "seed", "parameters: {A: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\n");
  const auto end = work(options("flame-chase", {"tuner:grid", "tuner:random"}, "evaluations=50"));
  HONE_ASSERT_OK(end);
  EXPECT_EQ(end->reason, "space exhausted");
  EXPECT_EQ(end->exit, 0);
  const RunProgress after = progress();
  EXPECT_EQ(after.evaluations.size(), 10u);
  std::set<std::string> sources, by;
  for (const Recorded& each : after.evaluations) sources.insert(each.experiment.sha256), by.insert(each.by);
  EXPECT_EQ(sources.size(), 10u);
  EXPECT_EQ(by.size(), 2u);
  ASSERT_FALSE(frontier().empty());
  EXPECT_EQ(frontier()[0].params.at("A"), "9");
  EXPECT_EQ(after.evaluations[2].turn, 1);
  EXPECT_EQ(after.evaluations[3].turn, 2);
}

TEST_F(FlameChase, ATunerAndAProgramShareOneBudget) {
  testing::fake_candidate(run.scratch(), "seed", "parameters: {A: [0, 1, 2, 3]}\n");
  scripts["b"] = [&](const Hands& hands) {
    (void)hands.bench("b", "speedup 1.25");
    return said_done();
  };
  FlowOptions with = options("flame-chase", {"tuner:grid", "command:b"}, "evaluations=5");
  EXPECT_EQ(work(with)->reason, "budget: evaluations");
  EXPECT_EQ(progress().evaluations.size(), 5u);
}

TEST(FlowAgents, RolesAndTheirFaults) {
  EXPECT_EQ(parse_flow_agents("goal", {"tuner"})->at(0).role, "agent");
  const auto two = parse_flow_agents("flame-chase", {"second_chaser=tuner:grid", "tuner"});
  HONE_ASSERT_OK(two);
  EXPECT_EQ(two->at(0).strategy, "ils");
  EXPECT_EQ(two->at(1).strategy, "grid");
  HONE_EXPECT_ERROR(parse_flow_agents("flame-chase", {"tuner"}), usage);
  HONE_EXPECT_ERROR(parse_flow_agents("goal", {"tuner", "tuner"}), usage);
  HONE_EXPECT_ERROR(parse_flow_agents("goal", {"third_chaser=tuner"}), usage);
  HONE_EXPECT_ERROR(parse_flow_agents("goal", {"tuner:bogus"}), usage);
  HONE_EXPECT_ERROR(parse_flow_agents("goal", {"agent=tuner", "agent=tuner"}), usage);
}

}  // namespace
}  // namespace hone
