#include "flow/watch.h"

#include <gtest/gtest.h>

#include "flow/observer.h"
#include "run/fake_run.h"
#include "run/record.h"
#include "run/report.h"
#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;

// A run with two experiments, a retained candidate, a turn, and text that wants out of its cell.
Summary sample(const std::string& name) {
  const hone::Run run = testing::fake_run(name);
  const Candidate x = testing::fake_candidate(run.scratch(), "x", ""), y = testing::fake_candidate(run.scratch(), "y", "");
  Report good = testing::fake_report(x, {{"w1", 1.3}, {"w2", 0.9}}, Decision::keep), bad = testing::fake_error_report(y, make_error(ErrorKind::compile, "<b>&\"|\x1b[31m bad\nline"));
  (void)record_bench(run, good, x);
  (void)record_bench(run, bad, y);
  auto ledger = Ledger::open(run.ledger());
  (void)frontier_add(run, *ledger, x, good.receipt, {"tiles", "baseline"}, 1);
  (void)ledger->append("run_started", 1, {{"agent", "command:a"}, {"flow", "goal"}, {"seed", 1u}, {"budget", {{"turns", 5}}}, {"target", 1.5}, {"resumed", false}});
  (void)ledger->append("turn_started", 1, {{"turn", 1}, {"attempt", 1}, {"role", "agent"}, {"agent", "command:a"}, {"steers", json::array()}});
  (void)ledger->append("finding", 2, {{"text", "wider <loads> help"}, {"by", "agent"}});
  (void)ledger->append("turn_ended", 9, {{"turn", 1}, {"attempt", 1}, {"role", "agent"}, {"agent", "command:a"}, {"end", "finished"}, {"cause", "result"}, {"reason", "exit 0"},
                                         {"counted", true}, {"failed", false}, {"usage", {{"output_tokens", 5}}}, {"wall_s", 8}});
  return *summarize(run);
}

TEST(Watch, OneFrameSaysAllAndFitsTheTerminal) {
  const Summary summary = sample("frame");
  const json live = {{"elapsed_s", 20}, {"state", "in a turn"}, {"queue", 1},
                     {"agents", {{{"role", "agent"}, {"agent", "command:a"}, {"state", "measuring"}, {"turn_s", 12.0}, {"silent_s", 3.0}, {"last", {{"kind", "text"}, {"text", "bell \a and \x1b[2J"}}}}}}};
  const std::vector<json> events = {{{"time", "2026-01-01T10:20:30.000Z"}, {"kind", "text"}, {"role", "agent"}, {"text", "hi"}}, {{"kind", 7}}};
  for (const int columns : {40, 80, 200}) {
    const std::string text = watch_text({summary, live, events}, columns);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\a'), std::string::npos);
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      EXPECT_LE(end - at, static_cast<std::size_t>(columns) + 8);     // bytes; a few characters take more than one
    }
  }
  const std::string text = watch_text({summary, live, events}, 160);
  for (const char* each : {"best so far", "measuring since 12.0 s, silent for 3.0 s", "turns 1 of 5", "tokens 5", "workloads of x", "w2", "slower", "frontier (1)", "10:20:30", "target 1.5x"})
    EXPECT_NE(text.find(each), std::string::npos) << each << "\n" << text;
  EXPECT_EQ(watch_json({summary, live, events})["schema"], "hone.watch/1");
}

TEST(Watch, TheCurveRisesWhereTheLedgerSaysSo) {
  Recorded early, late;
  early.elapsed_s = 10;
  late.elapsed_s = 50;
  const auto lines = curve_lines({{&early, 1.1}, {&late, 2.0}}, 100, 3.0, 60, 5);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_NE(lines[0].find("3.000x |....."), std::string::npos) << lines[0];
  EXPECT_EQ(std::count(lines[2].begin(), lines[2].end(), '#'), 25);    // the second half of 49 columns
  EXPECT_EQ(curve_lines({}, 1, std::nullopt, 60, 5).size(), 1u);
}

TEST(Report, HtmlIsWholeEscapedAndEachStatementHasItsRow) {
  const Summary summary = sample("html");
  const std::string page = report_html(summary);
  EXPECT_EQ(page.find("<b>&"), std::string::npos);
  EXPECT_NE(page.find("&lt;b&gt;&amp;&quot;"), std::string::npos);
  EXPECT_NE(page.find("wider &lt;loads&gt; help"), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  // Every link to a row leads somewhere.
  for (std::size_t at = 0; (at = page.find("href=\"#row-", at)) != std::string::npos; ++at) {
    const std::string id = page.substr(at + 7, page.find('"', at + 7) - at - 7);
    EXPECT_NE(page.find("id=\"" + id + "\""), std::string::npos) << id;
  }
  EXPECT_NE(report_markdown(summary).find("| 1 | command:a | by itself: exit 0 | 0 | 5 | unknown | 5-7 |"), std::string::npos) << report_markdown(summary);
  EXPECT_EQ(report_json(summary)["turns"][0]["usage"]["cost_usd"], nullptr);
  const std::string svg = curve_svg(summary);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_NE(svg.find("target 1.5x"), std::string::npos);
  EXPECT_NE(curve_svg(*summarize(testing::fake_run("empty"))).find("no experiment"), std::string::npos);
}

TEST(Statements, EachCitesARowThatExists) {
  const Checked checked = check_statements("## Best\n\nx is fastest (row 3).\n- y failed (rows 2, 4 and 99)\n- it will be great\nRow 1: begun\nthe arrow 7 hit\n---\n", {1, 2, 3, 4});
  EXPECT_EQ(checked.statements, 5);
  EXPECT_EQ(checked.unproved, 3);
  EXPECT_EQ(checked.text,
            "## Best\n\nx is fastest (row 3).\n- y failed (rows 2, 4 and 99)  [no such row: 99]\n- it will be great  [cites no row]\nRow 1: begun\nthe arrow 7 hit  [cites no row]\n---\n");
}

class Observer : public Driver {
 public:
  Result<TurnResult> run(const Turn& turn) override {
    seen = turn;
    for (const char* each : {"report.md", "status.json", "ledger.jsonl", "trace.jsonl"}) found += fs::exists(turn.cwd / "records" / each) ? 1 : 0;
    TurnResult result;
    result.end = end;
    result.last_text = "x is fastest (row 1)\nand 9x faster than light (row 1000)\n";
    return result;
  }
  Turn seen;
  TurnEnd end = TurnEnd::finished;
  int found = 0;
};

TEST(Observe, GivesCopiesAndHoldsTheAnswerAgainstTheLedger) {
  const Summary summary = sample("observed");
  Observer driver;
  const auto seen = observe(summary, driver, {});
  HONE_ASSERT_OK(seen);
  EXPECT_EQ(seen->summary.unproved, 1);
  EXPECT_NE(read_file(seen->file)->find("[no such row: 1000]"), std::string::npos);
  EXPECT_EQ(seen->file.filename(), "summary-000001.md");
  EXPECT_EQ(driver.found, 4);
  EXPECT_TRUE(driver.seen.confined);
  EXPECT_NE(driver.seen.cwd, summary.run.worktree());
  EXPECT_EQ(driver.seen.hidden, (std::vector<fs::path>{summary.run.root}));
  EXPECT_LT(driver.seen.prompt.size(), 16000u);
  EXPECT_FALSE(fs::exists(driver.seen.cwd));        // nothing is left of it
  driver.end = TurnEnd::failed;
  HONE_EXPECT_ERROR(observe(summary, driver, {}), environment);
  driver.end = TurnEnd::finished;
  EXPECT_EQ(observe(summary, driver, {})->file.filename(), "summary-000002.md");
}

}  // namespace
}  // namespace hone
