// What people are told of a run: no figure for what did not pass everywhere, each fact with its row.
#include "run/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run/fake_run.h"
#include "run/record.h"
#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;
using testing::fake_candidate;
using testing::fake_report;
using testing::fake_run;

TEST(Summary, NoFigureForWhatDidNotPassEverywhere) {
  const hone::Run run = fake_run("c07");
  const Candidate x = fake_candidate(run.scratch(), "x", ""), y = fake_candidate(run.scratch(), "y", "");
  Report pass = fake_report(x, {{"a", 1.1}, {"b", 1.1}, {"c", 1.1}, {"d", 1.1}});
  Report part = fake_report(y, {{"a", 2.0}, {"b", 2.0}, {"c", 2.0}, {"d", std::nullopt}});
  HONE_ASSERT_OK(record_bench(run, pass, x));
  HONE_ASSERT_OK(record_bench(run, part, y));
  const auto summary = summarize(run);
  HONE_ASSERT_OK(summary);
  EXPECT_EQ(summary->state, "new");
  const std::string page = report_markdown(*summary) + status_text(*summary);
  EXPECT_NE(page.find("1.100x"), std::string::npos);
  EXPECT_NE(page.find("3/4 passed, wrong_result: row 3 differs"), std::string::npos);
  EXPECT_EQ(page.find("2.0"), std::string::npos);
  EXPECT_EQ(page.find("1.68"), std::string::npos);
  const json report = report_json(*summary);
  EXPECT_EQ(report["best"]["candidate"], "x");
  EXPECT_EQ(report["best"]["row"], 1);
  ASSERT_EQ(report["experiments"].size(), 2u);
  EXPECT_TRUE(report["experiments"][1]["geomean"].is_null());
  EXPECT_TRUE(report["experiments"][1]["decision"].is_null());
  EXPECT_EQ(report["experiments"][1]["workloads"]["a"]["ratio"], 2.0);
  ASSERT_EQ(report["best_so_far"].size(), 1u);
}

TEST(Summary, CountsAgainstTheBudget) {
  const hone::Run run = fake_run("counts");
  auto ledger = Ledger::open(run.ledger());
  HONE_ASSERT_OK(ledger);
  HONE_ASSERT_OK(ledger->append("run_started", 0, {{"agent", "tuner:ils"}, {"seed", 3u}, {"budget", {{"evaluations", 10}, {"time", 90}, {"cost", 1}}}, {"target", 1.5}, {"resumed", false}}));
  const auto open = summarize(run);
  HONE_ASSERT_OK(open);
  EXPECT_EQ(open->state, "interrupted");
  EXPECT_NE(status_text(*open).find("evaluations 0/10, 0 s/1m30s, cost 0/1"), std::string::npos) << status_text(*open);
  {
    const auto lock = FileLock::acquire(run.lock());
    EXPECT_EQ(summarize(run)->state, "running");
  }
  HONE_ASSERT_OK(ledger->append("run_ended", 12, {{"reason", "cancelled"}, {"evaluations", 0}}));
  const auto ended = summarize(run);
  EXPECT_EQ(ended->state, "ended");
  EXPECT_EQ(status_json(*ended)["reason"], "cancelled");
  EXPECT_EQ(status_json(*ended)["elapsed_s"]["used"], 12);
}

TEST(Summary, MarkdownCellsCannotBreakTheirTable) {
  const hone::Run run = fake_run("cells");
  const Candidate x = fake_candidate(run.scratch(), "x", "");
  Report report = testing::fake_error_report(x, make_error(ErrorKind::compile, "expected | here\nsecond line").at({"kernel.cpp", 3, 1}));
  HONE_ASSERT_OK(record_bench(run, report, x));
  const std::string page = report_markdown(*summarize(run));
  EXPECT_NE(page.find("kernel.cpp:3: expected \\| here |"), std::string::npos) << page;
  EXPECT_EQ(page.find("second line"), std::string::npos);
}

}  // namespace
}  // namespace hone
