#include "flow/brief.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "run/fake_run.h"
#include "run/record.h"
#include "testing/testing.h"

namespace hone {
namespace {

std::string brief(const hone::Run& run, const std::vector<Said>& steers = {}) {
  const auto ledger = read_ledger(run.ledger());
  const RunProgress progress = progress_of(ledger->rows);
  const auto frontier = frontier_of(ledger->rows);
  return brief_of({run, progress, frontier, *parse_budget("evaluations=9,cost=2"), 1.5, 12, 2, 1, "second_chaser", {"first_chaser", "second_chaser"}, steers});
}

TEST(Brief, SaysWhereTheRunStands) {
  const hone::Run run = testing::fake_run("brief");
  (void)write_file_atomic(run.root / "PROMPT.md", "# The assignment\n");
  const Candidate x = testing::fake_candidate(run.scratch(), "x", ""), y = testing::fake_candidate(run.scratch(), "y", "");
  Report good = testing::fake_report(x, {{"w1", 1.3}, {"w2", 1.3}}, Decision::keep), bad = testing::fake_report(y, {{"w1", 2.0}, {"w2", std::nullopt}});
  HONE_ASSERT_OK(record_bench(run, good, x));
  HONE_ASSERT_OK(record_bench(run, bad, y));
  auto ledger = Ledger::open(run.ledger());
  HONE_ASSERT_OK(frontier_add(run, *ledger, x, good.receipt, {"tiles", "baseline"}, 0));
  HONE_ASSERT_OK(ledger->append("finding", 0, {{"text", "wider loads\nhelp"}, {"by", "first_chaser"}}));
  const std::string text = brief(run, {{7, "", "person", "try FP8"}});
  for (const char* each : {"you are second_chaser", "evaluations 0 of 9", "cost 0.00 of 2", "try FP8 (row 7)", "Best: `x` 1.300x", "| w1 | 1.300x |", "y: 1/2 passed, wrong_result",
                           "wider loads help (row 4, first_chaser)", "# The assignment", "1.5x or faster twice"})
    EXPECT_NE(text.find(each), std::string::npos) << each << "\n" << text;
}

TEST(Brief, IsBoundedWhateverAgentsWrite) {
  const hone::Run run = testing::fake_run("long");
  (void)write_file_atomic(run.root / "PROMPT.md", std::string(9000, 'p'));
  auto ledger = Ledger::open(run.ledger());
  for (int i = 0; i < 40; ++i) {
    HONE_ASSERT_OK(ledger->append("finding", 0, {{"text", std::string(3000, 'f')}, {"by", "agent"}}));
    HONE_ASSERT_OK(ledger->append("evaluation", 0, {{"by", "agent"}, {"candidate", std::string(500, 'c')}, {"sha256", std::to_string(i)}, {"idea", std::string(4000, 'i')}, {"passed", 0}, {"total", 2},
                                                    {"error", {{"kind", "compile"}, {"message", std::string(5000, 'm') + "\xff"}}}}));
  }
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "\xc3\xa4";
  const std::string text = brief(run, {{1, "", "person", umlauts}, {2, "", "person", umlauts}, {3, "", "person", umlauts}, {4, "", "person", umlauts}, {5, "", "person", umlauts}});
  EXPECT_LE(text.size(), kLongestBrief);
  EXPECT_TRUE(is_utf8(text));
  for (const char* each : {"A person says", "Last experiments", "What did not work", "Findings", "ppppp"}) EXPECT_NE(text.find(each), std::string::npos) << each;
}

TEST(Brief, ALongAssignmentIsPointedTo) {
  const hone::Run run = testing::fake_run("pointed");
  (void)write_file_atomic(run.root / "PROMPT.md", std::string(20000, 'p'));
  EXPECT_NE(brief(run).find((run.root / "PROMPT.md").string()), std::string::npos);
}

}  // namespace
}  // namespace hone
