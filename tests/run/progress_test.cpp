// What a ledger says: counts, bests and interrupted tries.
#include "run/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;

class Rows {
 public:
  Rows& add(const std::string& kind, json data, double elapsed = 0) {
    rows_.push_back({static_cast<std::int64_t>(rows_.size()) + 1, "2026-01-01T00:00:00.000Z", kind, elapsed, std::move(data)});
    return *this;
  }
  Rows& evaluation(const std::string& sha, std::optional<double> geomean, const std::string& by = "tuner") {
    Experiment experiment;
    experiment.candidate = sha;
    experiment.sha256 = sha;
    experiment.total = 2;
    experiment.passed = geomean ? 2 : 1;
    experiment.geomean = geomean;
    json data = experiment;
    data["by"] = by;
    return add("evaluation", data, static_cast<double>(rows_.size()));
  }
  RunProgress progress() const { return progress_of(rows_); }

 private:
  std::vector<LedgerRow> rows_;
};

TEST(Progress, BestIsTheFastestThatPassedAndTheFirstOfEquals) {
  const RunProgress progress = Rows().evaluation("a", 1.1).evaluation("b", std::nullopt).evaluation("c", 1.3).evaluation("d", 1.3).progress();
  ASSERT_NE(progress.best(), nullptr);
  EXPECT_EQ(progress.best()->experiment.sha256, "c");
  EXPECT_EQ(progress.best()->row, 3);
  EXPECT_EQ(progress.evaluations.size(), 4u);
}

TEST(Progress, NothingPassedMeansNoBest) { EXPECT_EQ(Rows().evaluation("a", std::nullopt).progress().best(), nullptr); }

TEST(Progress, ARowThatClaimsAScoreWithoutPassingIsNotScored) {
  Experiment liar;
  liar.sha256 = "x";
  liar.scored = true;
  liar.passed = 3;
  liar.total = 4;
  liar.geomean = 2.0;
  liar.decision = "KEEP";
  json data = liar;
  data["by"] = "tuner";
  const RunProgress progress = Rows().add("evaluation", data).progress();
  EXPECT_EQ(progress.best(), nullptr);
  EXPECT_FALSE(progress.evaluations[0].experiment.geomean.has_value());
  EXPECT_EQ(progress.evaluations[0].experiment.decision, "");
}

TEST(Progress, BenchesOfPeopleSpendNoBudget) {
  const RunProgress progress = Rows().evaluation("a", 1.0).evaluation("b", 2.0, "bench").progress();
  EXPECT_EQ(progress.evaluations.size(), 1u);
  EXPECT_EQ(progress.benches.size(), 1u);
}

TEST(Progress, CountsTriesThatWereInterrupted) {
  const json start = {{"purpose", "search"}, {"sha256", "a"}};
  Rows rows;
  rows.add("evaluation_started", start).add("evaluation_started", start).add("evaluation_cancelled", start);
  EXPECT_EQ(rows.progress().open_starts.at("search:a"), 1);
  rows.evaluation("a", 1.0);
  EXPECT_TRUE(rows.progress().open_starts.empty());
}

TEST(Progress, ElapsedIsCumulativeAndBudgetsAreTheNewest) {
  Rows rows;
  rows.add("run_started", {{"agent", "tuner:ils"}, {"seed", 7u}, {"budget", {{"evaluations", 10}}}, {"target", nullptr}}, 0)
      .add("run_ended", {{"reason", "cancelled"}}, 12.5)
      .add("run_started", {{"agent", "tuner:ils"}, {"seed", 7u}, {"budget", {{"evaluations", 15}}}, {"target", 1.5}}, 12.5);
  const RunProgress progress = rows.progress();
  EXPECT_EQ(progress.elapsed_s, 12.5);
  EXPECT_EQ(progress.budget.evaluations(), 15);
  EXPECT_EQ(progress.target, 1.5);
  EXPECT_FALSE(progress.ended.has_value());
}

TEST(Progress, RowsOfAnyShapeAreRead) {
  Rows rows;
  for (const char* kind : {"run_started", "run_ended", "evaluation_started", "evaluation", "remeasure", "frontier_add", "note", "what"})
    for (const json& data : {json::object(), json{{"by", 1}, {"sha256", nullptr}, {"budget", "x"}, {"text", 4}, {"workloads", {{"w", 1}}}, {"params", {{"a", 1}}}}})
      rows.add(kind, data);
  EXPECT_EQ(rows.progress().best(), nullptr);
}

}  // namespace
}  // namespace hone
