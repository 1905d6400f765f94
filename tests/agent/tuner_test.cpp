#include "agent/tuner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "run/fake_run.h"
#include "testing/testing.h"

namespace hone {
namespace {

using testing::fake_candidate;
using testing::fake_report;
using testing::fake_run;

// Judges by a table in the test. A full measurement says KEEP when the incumbent is beaten clearly.
class FakeEvaluator : public Evaluator {
 public:
  using Score = std::function<Result<Report>(const Candidate&, bool quick)>;
  explicit FakeEvaluator(Score score) : score_(std::move(score)) {}

  Result<Report> evaluate(const Evaluation& evaluation) override {
    judged.push_back(evaluation.candidate.sha256);
    if (!evaluation.quick) budgets.push_back(evaluation.time_budget_s.value_or(0));
    auto report = score_(evaluation.candidate, evaluation.quick);
    if (!report || !report->geomean) return report;
    double rival = 1;
    if (evaluation.incumbent)
      if (const auto other = score_(*evaluation.incumbent, false); other && other->geomean) rival = *other->geomean;
    if (!evaluation.quick) {
      const double gain = *report->geomean / rival;
      report = fake_report(evaluation.candidate, {{"w1", *report->geomean}, {"w2", *report->geomean}},
                           gain > 1.01 ? Decision::keep : gain < 0.99 ? Decision::reject : Decision::ambiguous);
    }
    return report;
  }
  void prepare(const std::vector<Candidate>& upcoming) override {
    for (const Candidate& each : upcoming) prepared.insert(each.sha256);
  }

  std::vector<std::string> judged;
  std::vector<double> budgets;            // of full measurements
  std::set<std::string> prepared;

 private:
  Score score_;
};

double number(const Candidate& candidate, const std::string& name) { return std::stod(candidate.values.at(name)); }

Result<Report> ratio(const Candidate& candidate, double value) { return fake_report(candidate, {{"w1", value}, {"w2", value}}); }

const char* kSparse =
    "parameters:\n  bx: [1, 2, 4, 8, 16, 32, 64, 128, 256]\n  by: [1, 2, 4, 8, 16, 32]\n  u: [1, 2, 4]\n"
    "constraints:\n  - \"bx * by == 256\"\n  - \"by % u == 0\"\n";

class Tuner : public ::testing::Test {
 protected:
  hone::Run run = fake_run(::testing::UnitTest::GetInstance()->current_test_info()->name());

  TunerOptions options(const std::string& settings, const std::string& budget, const std::string& strategy = "ils", std::uint64_t seed = 1) {
    TunerOptions options;
    options.seeds = {fake_candidate(run.scratch(), "seed", settings)};
    options.budget = *parse_budget(budget);
    options.strategy = strategy;
    options.seed = seed;
    return options;
  }
  Result<TunerOutcome> tuned(const TunerOptions& options, Evaluator& evaluator) {
    HONE_TRY(Ledger ledger, Ledger::open(run.ledger()));
    HONE_CHECK(ledger.append("run_started", progress_of(ledger.rows()).elapsed_s,
                             {{"agent", "tuner:" + options.strategy}, {"seed", options.seed}, {"budget", options.budget}, {"target", nullptr}, {"resumed", true}}));
    return tune(run, ledger, options, evaluator);
  }
  std::vector<LedgerRow> rows() { return read_ledger(run.ledger())->rows; }
  RunProgress progress() { return progress_of(rows()); }
};

std::set<std::string> sources(const RunProgress& progress) {
  std::set<std::string> all;
  for (const Recorded& each : progress.evaluations) all.insert(each.experiment.sha256);
  return all;
}

TEST_F(Tuner, SparseSpaceIsExhaustedWithExactlyItsPoints) {
  for (const char* strategy : {"ils", "random", "grid"})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      run = fake_run(fmt::format("sparse-{}-{}", strategy, seed));
      FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 0.5 + number(c, "u") / 100); });
      const auto outcome = tuned(options(kSparse, "evaluations=20", strategy, seed), evaluator);
      HONE_ASSERT_OK(outcome);
      EXPECT_EQ(outcome->end, RunEnd::space_exhausted);
      EXPECT_EQ(exit_code_of(outcome->end), 0);
      EXPECT_EQ(progress().evaluations.size(), 15u);
      EXPECT_EQ(sources(progress()).size(), 15u);
      for (const Recorded& each : progress().evaluations) {
        const Parameters& params = each.experiment.params;
        EXPECT_EQ(std::stoi(params.at("bx")) * std::stoi(params.at("by")), 256);
      }
    }
}

TEST_F(Tuner, StopsAtTheBudgetOfEvaluations) {
  FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 0.9 + number(c, "u") / 100); });
  const auto outcome = tuned(options(kSparse, "evaluations=10"), evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->end, RunEnd::budget_evaluations);
  EXPECT_EQ(exit_code_of(outcome->end), 4);
  EXPECT_EQ(progress().evaluations.size(), 10u);
  // What is judged was compiled before, and little else.
  for (const std::string& sha : evaluator.judged) EXPECT_EQ(evaluator.prepared.count(sha), 1u);
  EXPECT_LE(evaluator.prepared.size(), 15u);
}

TEST_F(Tuner, SpentBudgetJudgesNothingOnResumeAndARaisedOneGoesOn) {
  FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 1 + number(c, "bx") / 1000); });
  HONE_ASSERT_OK(tuned(options(kSparse, "evaluations=10"), evaluator));
  const std::size_t before = evaluator.judged.size();
  const auto again = tuned(options(kSparse, "evaluations=10"), evaluator);
  HONE_ASSERT_OK(again);
  EXPECT_EQ(again->end, RunEnd::budget_evaluations);
  EXPECT_EQ(evaluator.judged.size(), before);
  HONE_ASSERT_OK(tuned(options(kSparse, "evaluations=14"), evaluator));
  EXPECT_EQ(progress().evaluations.size(), 14u);
  EXPECT_EQ(sources(progress()).size(), 14u);
}

TEST_F(Tuner, WinnerIsMeasuredTwiceInFullAndRetained) {
  FakeEvaluator evaluator([](const Candidate& c, bool quick) { return ratio(c, number(c, "A") == 3 ? (quick ? 1.45 : 1.40) : 1.1); });
  const auto outcome = tuned(options("parameters: {A: [1, 2, 3, 4]}\n", "evaluations=10"), evaluator);
  HONE_ASSERT_OK(outcome);
  ASSERT_TRUE(outcome->retained.has_value());
  EXPECT_EQ(outcome->retained->params.at("A"), "3");
  EXPECT_DOUBLE_EQ(outcome->retained->geomean, 1.40);
  const RunProgress after = progress();
  ASSERT_EQ(after.remeasures.size(), 2u);
  for (const Recorded& each : after.remeasures) EXPECT_EQ(each.experiment.sha256, outcome->retained->sha256);
  EXPECT_EQ(after.evaluations.size(), 4u);
  // What lies in the worktree is the very candidate.
  const auto frozen = load_candidate(run.frontier() / outcome->retained->name);
  HONE_ASSERT_OK(frozen);
  EXPECT_EQ(frozen->sha256, outcome->retained->sha256);
}

TEST_F(Tuner, ALuckyQuickMeasurementIsNotNamed) {
  // A=1 looks fast once and is slow in full; A=2 holds.
  FakeEvaluator evaluator([](const Candidate& c, bool quick) {
    return ratio(c, number(c, "A") == 1 ? (quick ? 3.0 : 0.8) : number(c, "A") == 2 ? 1.2 : 0.5);
  });
  const auto outcome = tuned(options("parameters: {A: [1, 2, 3]}\n", "evaluations=10"), evaluator);
  HONE_ASSERT_OK(outcome);
  ASSERT_TRUE(outcome->retained.has_value());
  EXPECT_EQ(outcome->retained->params.at("A"), "2");
}

TEST_F(Tuner, ANearTieKeepsTheIncumbent) {
  FakeEvaluator first([](const Candidate& c, bool) { return ratio(c, number(c, "A") == 1 ? 1.30 : 1.0); });
  HONE_ASSERT_OK(tuned(options("parameters: {A: [1, 2, 3]}\n", "evaluations=1"), first));
  ASSERT_EQ(frontier_of(rows()).size(), 1u);
  FakeEvaluator second([](const Candidate& c, bool) { return ratio(c, number(c, "A") == 1 ? 1.30 : 1.305); });
  const auto outcome = tuned(options("parameters: {A: [1, 2, 3]}\n", "evaluations=3"), second);
  HONE_ASSERT_OK(outcome);
  EXPECT_FALSE(outcome->retained.has_value());
  ASSERT_EQ(frontier_of(rows()).size(), 1u);
  EXPECT_EQ(frontier_of(rows())[0].params.at("A"), "1");
}

TEST_F(Tuner, AnUndecidedWinnerIsMeasuredLongerAndOnlyOnce) {
  // One configuration, 0.5% faster than the baseline: each full measurement is ambiguous.
  FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 1.005); });
  const TunerOptions with = options("parameters: {A: [1]}\n", "evaluations=10");
  const auto outcome = tuned(with, evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_FALSE(outcome->retained.has_value());
  EXPECT_EQ(progress().remeasures.size(), 2u);
  ASSERT_EQ(evaluator.budgets.size(), 2u);
  EXPECT_EQ(evaluator.budgets[1], 2 * evaluator.budgets[0]);
  EXPECT_NE(outcome->note.find("AMBIGUOUS in row"), std::string::npos) << outcome->note;
  HONE_ASSERT_OK(tuned(with, evaluator));
  EXPECT_EQ(progress().remeasures.size(), 2u);
}

TEST_F(Tuner, NothingFasterThanTheBaselineRetainsNothing) {
  FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 0.7); });
  const auto outcome = tuned(options("parameters: {A: [1, 2]}\n", "evaluations=10"), evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_FALSE(outcome->retained.has_value());
  EXPECT_TRUE(frontier_of(rows()).empty());
  ASSERT_NE(progress().best(), nullptr);
}

TEST_F(Tuner, WrongResultsAreNeverBestHoweverFast) {
  FakeEvaluator evaluator([](const Candidate& c, bool) -> Result<Report> {
    if (number(c, "MODE") == 0) return ratio(c, 0.9);
    // Timed before it was found out, as a faulty judge might report it.
    Report report = fake_report(c, {{"w1", std::nullopt}, {"w2", std::nullopt}});
    for (WorkloadReport& each : report.workloads) each.candidate_s = 0, each.ratio = INFINITY;
    return report;
  });
  HONE_ASSERT_OK(tuned(options("parameters: {MODE: [0, 1, 2]}\n", "evaluations=10"), evaluator));
  ASSERT_NE(progress().best(), nullptr);
  EXPECT_EQ(progress().best()->experiment.params.at("MODE"), "0");
  for (const Recorded& each : progress().evaluations) {
    if (each.experiment.params.at("MODE") == "0") continue;
    EXPECT_FALSE(each.experiment.scored);
    for (const auto& [id, result] : each.experiment.workloads) {
      EXPECT_FALSE(result.ratio.has_value());
      EXPECT_FALSE(result.candidate_s.has_value());
    }
  }
}

Result<Report> faulty(const Candidate& c) {
  switch (static_cast<int>(number(c, "V"))) {
    case 4: return testing::fake_error_report(c, make_error(ErrorKind::crash, "signal 11"));
    case 5: return testing::fake_error_report(c, make_error(ErrorKind::timeout, "no end after 10 s"));
    case 6: return testing::fake_error_report(c, make_error(ErrorKind::out_of_memory, "needs 100 GB"));
    case 7: return fail(make_error(ErrorKind::compile, "expected ';'").at({"kernel.cpp", 7, 3}));
    default: return ratio(c, 1.1 + number(c, "V") / 10);
  }
}

TEST_F(Tuner, FaultsOfOneConfigurationAreRowsAndTheRunGoesOn) {
  FakeEvaluator evaluator([](const Candidate& c, bool) { return faulty(c); });
  const auto outcome = tuned(options("parameters: {V: [0, 1, 2, 3, 4, 5, 6, 7]}\n", "evaluations=100"), evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->end, RunEnd::space_exhausted);
  std::map<std::string, std::string> kinds;
  for (const Recorded& each : progress().evaluations)
    kinds[each.experiment.params.at("V")] = each.experiment.error ? std::string(name_of(each.experiment.error->kind)) : "pass";
  EXPECT_EQ(kinds, (std::map<std::string, std::string>{{"0", "pass"}, {"1", "pass"}, {"2", "pass"}, {"3", "pass"}, {"4", "crash"},
                                                       {"5", "timeout"}, {"6", "out_of_memory"}, {"7", "compile"}}));
  EXPECT_EQ(progress().evaluations.size(), 8u);
  for (const Recorded& each : progress().evaluations)
    if (each.experiment.params.at("V") == "7") {
      EXPECT_EQ(each.experiment.error->place.file, "kernel.cpp");
      EXPECT_EQ(each.experiment.error->place.line, 7);
    }
  ASSERT_TRUE(outcome->retained.has_value());
  EXPECT_EQ(outcome->retained->params.at("V"), "3");
}

TEST_F(Tuner, AConfigurationInterruptedAgainAndAgainIsRecordedNotRunForEver) {
  const TunerOptions with = options("parameters: {V: [0, 1, 2, 3, 4, 5, 6, 7]}\n", "evaluations=100");
  int starts_of_five = 0;
  for (int session = 0; session < 10; ++session) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      // V = 5 brings the whole process down, as a machine that is reset would.
      FakeEvaluator evaluator([](const Candidate& c, bool) -> Result<Report> {
        if (number(c, "V") == 5) ::raise(SIGKILL);
        return faulty(c);
      });
      ::_exit(tuned(with, evaluator).has_value() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      break;
    }
  }
  for (const LedgerRow& row : rows())
    if (row.kind == "evaluation_started" && row.data["params"]["V"] == "5") ++starts_of_five;
  EXPECT_EQ(starts_of_five, kMaxAttempts);
  EXPECT_EQ(progress().evaluations.size(), 8u);
  EXPECT_EQ(sources(progress()).size(), 8u);
  for (const Recorded& each : progress().evaluations)
    if (each.experiment.params.at("V") == "5") {
      ASSERT_TRUE(each.experiment.error.has_value());
      EXPECT_NE(each.experiment.error->message.find("interrupted 3 times"), std::string::npos);
      EXPECT_NE(each.experiment.error->message.find("V=5"), std::string::npos);
    }
  EXPECT_TRUE(progress().ended.has_value());
}

TEST_F(Tuner, KilledAtAnyMomentItEndsAsAnUndisturbedRun) {
  const char* settings = "parameters: {A: [0, 1, 2, 3, 4], B: [0, 1, 2, 3, 4]}\n";
  const auto score = [](const Candidate& c, bool) {
    ::usleep(300);
    return ratio(c, 1 + (10 - (number(c, "A") - 3) * (number(c, "A") - 3) - (number(c, "B") - 1) * (number(c, "B") - 1)) / 50);
  };
  FakeEvaluator undisturbed(score);
  HONE_ASSERT_OK(tuned(options(settings, "evaluations=12"), undisturbed));
  const RunProgress expected = progress();
  const auto expected_frontier = frontier_of(rows());
  ASSERT_EQ(expected_frontier.size(), 1u);

  std::uint64_t state = 12345;
  for (int round = 0; round < 6; ++round) {
    run = fake_run(fmt::format("killed-{}", round));
    const TunerOptions with = options(settings, "evaluations=12");
    int kills = 0;
    for (bool ended = false; !ended;) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        FakeEvaluator evaluator(score);
        ::_exit(tuned(with, evaluator).has_value() ? 0 : 1);
      }
      state = state * 6364136223846793005u + 1442695040888963407u;
      if (kills < 12) {
        ::usleep(static_cast<useconds_t>((state >> 33) % 60000));
        ::kill(pid, SIGKILL);
        ++kills;
      }
      int status = 0;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      ended = WIFEXITED(status);
      if (ended) {
        EXPECT_EQ(WEXITSTATUS(status), 0);
      }
      const auto ledger = read_ledger(run.ledger());
      HONE_ASSERT_OK(ledger);
      EXPECT_TRUE(ledger->faults.empty());
    }
    const RunProgress after = progress();
    ASSERT_EQ(after.evaluations.size(), expected.evaluations.size());
    EXPECT_EQ(sources(after).size(), after.evaluations.size());
    std::size_t interrupted = 0;
    for (const auto* list : {&after.evaluations, &after.remeasures})
      for (const Recorded& each : *list) interrupted += each.experiment.attempts >= kMaxAttempts;
    if (interrupted != 0) continue;   // killed three times in one configuration: its result differs, the count may not
    for (std::size_t i = 0; i < after.evaluations.size(); ++i)
      EXPECT_EQ(after.evaluations[i].experiment.sha256, expected.evaluations[i].experiment.sha256);
    const auto frontier = frontier_of(rows());
    ASSERT_EQ(frontier.size(), 1u);
    EXPECT_EQ(frontier[0].sha256, expected_frontier[0].sha256);
    EXPECT_TRUE(altered_entries(run, frontier).empty());
  }
}

TEST_F(Tuner, TargetEndsTheRunOnceMeasuredTwice) {
  FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 1 + number(c, "A") / 10); });
  TunerOptions with = options("parameters: {A: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\n", "evaluations=100", "grid");
  with.target = 1.5;
  const auto outcome = tuned(with, evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->end, RunEnd::target_reached);
  EXPECT_EQ(exit_code_of(outcome->end), 0);
  EXPECT_EQ(progress().evaluations.size(), 6u);
  EXPECT_EQ(progress().remeasures.size(), 2u);
  ASSERT_EQ(frontier_of(rows()).size(), 1u);
}

TEST_F(Tuner, AQuickResultAboveTheTargetIsNotEnough) {
  FakeEvaluator evaluator([](const Candidate& c, bool quick) { return ratio(c, quick ? 2.0 : 1.2 + number(c, "A") / 1000); });
  TunerOptions with = options("parameters: {A: [0, 1, 2]}\n", "evaluations=100", "grid");
  with.target = 1.5;
  const auto outcome = tuned(with, evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->end, RunEnd::space_exhausted);
}

TEST_F(Tuner, CancelKeepsWhatIsFinishedAndCountsNoTry) {
  std::atomic<bool> cancel = false;
  TunerOptions with = options(kSparse, "evaluations=15");
  with.cancel = &cancel;
  int calls = 0;
  FakeEvaluator evaluator([&](const Candidate& c, bool) {
    auto report = ratio(c, 0.9);
    if (++calls == 4) {
      cancel = true;
      report->cancelled = true;
    }
    return report;
  });
  const auto outcome = tuned(with, evaluator);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->end, RunEnd::cancelled);
  EXPECT_EQ(exit_code_of(outcome->end), 4);
  EXPECT_EQ(progress().evaluations.size(), 3u);
  EXPECT_TRUE(progress().open_starts.empty());
  cancel = false;
  const auto rest = tuned(with, evaluator);
  HONE_ASSERT_OK(rest);
  EXPECT_EQ(rest->end, RunEnd::space_exhausted);
  EXPECT_EQ(progress().evaluations.size(), 15u);
}

TEST_F(Tuner, AFaultOfTheMachineBreaksOffWithoutBlamingAConfiguration) {
  FakeEvaluator evaluator([](const Candidate&, bool) -> Result<Report> { return fail(ErrorKind::sandbox_unavailable, "user namespaces"); });
  HONE_EXPECT_ERROR(tuned(options(kSparse, "evaluations=15"), evaluator), sandbox_unavailable);
  EXPECT_TRUE(progress().evaluations.empty());
  EXPECT_TRUE(progress().open_starts.empty());
  ASSERT_TRUE(progress().ended.has_value());
  EXPECT_EQ(progress().ended->data["reason"], "error");
}

TEST_F(Tuner, ADeviceThatKeepsFailingBreaksOff) {
  FakeEvaluator evaluator([](const Candidate&, bool) -> Result<Report> { return fail(ErrorKind::device, "runner is gone"); });
  HONE_EXPECT_ERROR(tuned(options(kSparse, "evaluations=15"), evaluator), device);
  EXPECT_LE(evaluator.judged.size(), 3u);
}

TEST_F(Tuner, TimeIsCumulative) {
  FakeEvaluator evaluator([](const Candidate& c, bool) {
    ::usleep(20000);
    return ratio(c, 0.5);
  });
  const auto outcome = tuned(options(kSparse, "time=0.1s"), evaluator);
  HONE_ASSERT_OK(outcome);
  if (outcome->end == RunEnd::budget_time) {
    const std::size_t before = evaluator.judged.size();
    const auto again = tuned(options(kSparse, "time=0.1s"), evaluator);
    HONE_ASSERT_OK(again);
    EXPECT_EQ(again->end, RunEnd::budget_time);
    EXPECT_LE(evaluator.judged.size(), before + 1);
  }
  EXPECT_LT(progress().evaluations.size(), 15u);
}

TEST_F(Tuner, ProgressLineSaysBestAndLast) {
  std::vector<std::string> lines;
  FakeEvaluator evaluator([](const Candidate& c, bool) { return ratio(c, 1 + number(c, "A") / 10); });
  TunerOptions with = options("parameters: {A: [4, 3]}\n", "evaluations=2", "grid");
  with.progress = [&](const std::string& line) { lines.push_back(line); };
  HONE_ASSERT_OK(tuned(with, evaluator));
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(lines[1].starts_with("2/2 evaluations, ")) << lines[1];
  EXPECT_NE(lines[1].find("best 1.40x (A=4), last PASS 1.30x"), std::string::npos) << lines[1];
}

}  // namespace
}  // namespace hone
