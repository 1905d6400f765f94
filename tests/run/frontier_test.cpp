#include "run/frontier.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "judge/receipt.h"
#include "run/fake_run.h"
#include "run/git.h"
#include "run/record.h"
#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;
using testing::fake_candidate;
using testing::fake_receipt;
using testing::fake_report;
using testing::fake_run;

class Frontier : public ::testing::Test {
 protected:
  hone::Run run = fake_run(::testing::UnitTest::GetInstance()->current_test_info()->name());
  Candidate x = fake_candidate(run.scratch(), "x", "");
  Candidate y = fake_candidate(run.scratch(), "y", "parameters: {MR: [2, 4], SIDE: [\"left\", \"right\"]}\n");

  std::string receipt_of(const Candidate& candidate, const std::map<std::string, std::optional<double>>& ratios) {
    Report report = fake_report(candidate, ratios);
    EXPECT_TRUE(record_bench(run, report, candidate).has_value());
    return fs::path(report.receipt).stem().string();
  }
  std::vector<FrontierEntry> entries() { return frontier_of(read_ledger(run.ledger())->rows); }
  json index() { return json::parse(read_file(run.frontier() / "index.json").value()); }
  Result<FrontierEntry> add(const Candidate& candidate, const std::string& receipt, const std::string& name = {}) {
    HONE_TRY(Ledger ledger, Ledger::open(run.ledger()));
    return frontier_add(run, ledger, candidate, receipt, {}, 0, name);
  }
};

void refused(const Result<FrontierEntry>& result, const std::string& reason) {
  HONE_EXPECT_ERROR(result, contract);
  if (!result) {
    EXPECT_NE(result.error().message.find(reason), std::string::npos) << to_text(result.error());
  }
}

TEST_F(Frontier, APassingCandidateEntersWithItsSource) {
  const std::string receipt = receipt_of(x, {{"a", 1.1}, {"b", 1.1}});
  const auto entry = add(x, receipt);
  HONE_ASSERT_OK(entry);
  EXPECT_EQ(entry->name, "x");
  EXPECT_EQ(entry->receipt, receipt);
  EXPECT_DOUBLE_EQ(entry->geomean, 1.1);
  EXPECT_EQ(read_file(run.frontier() / "x/kernel.cpp").value(), "// x\n");
  const auto schema = schema_text("frontier");
  HONE_ASSERT_OK(schema);
  HONE_ASSERT_OK(check_schema(index(), *schema, "index"));
  EXPECT_EQ(index()["entries"][0]["added"], read_ledger(run.ledger())->rows.back().time);
  EXPECT_EQ(index()["entries"][0]["name"], "x");
  EXPECT_EQ(Git(run.worktree()).read({"log", "-1", "--format=%an %s"}).value(), "hone Frontier: add x (1.10x)\n");
  EXPECT_EQ(Git(run.worktree()).read({"status", "--porcelain", "candidates/toy/frontier"}).value(), "");
}

TEST_F(Frontier, WhatDoesNotPassEverywhereNeverEnters) {
  const std::string passing = receipt_of(x, {{"a", 1.1}, {"b", 1.1}, {"c", 1.1}, {"d", 1.1}});
  const std::string failing = receipt_of(y, {{"a", 2.0}, {"b", 2.0}, {"c", 2.0}, {"d", std::nullopt}});
  HONE_ASSERT_OK(add(x, passing));
  refused(add(y, failing), "3 of 4 workloads passed");
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries()[0].name, "x");
  // No mean of the three that passed anywhere.
  const std::string ledger = read_file(run.ledger()).value();
  EXPECT_EQ(ledger.find("\"geomean\":2"), std::string::npos);
  EXPECT_EQ(ledger.find("1.68"), std::string::npos);
  const auto side = frontier_side(run, entries(), failing);
  HONE_ASSERT_OK(side);
  EXPECT_FALSE(side->geomean.has_value());
  EXPECT_EQ(side->workloads.at("d").first, "FAIL");
  EXPECT_EQ(side->workloads.at("a").second, 2.0);
}

TEST_F(Frontier, OnlyTheBytesThatWereJudgedEnter) {
  const std::string receipt = receipt_of(x, {{"a", 1.5}});
  std::ofstream(x.path / "kernel.cpp", std::ios::app) << "// edited afterwards\n";
  const auto edited = load_candidate(x.path);
  HONE_ASSERT_OK(edited);
  refused(add(*edited, receipt), "it judged other bytes");
  refused(add(y, receipt), "it judged other bytes");
  EXPECT_TRUE(entries().empty());
}

TEST_F(Frontier, AReceiptOfAnotherTaskDoesNotAdmit) {
  Report report = fake_report(x, {{"a", 1.5}});
  report.receipt_body = fake_receipt(report, x, std::string(64, '2'));
  HONE_ASSERT_OK(write_receipt(report, run.receipts()));
  refused(add(x, report.receipt), "of task toy (222222222222)");
}

TEST_F(Frontier, AQuickLookDoesNotAdmit) {
  Report report = fake_report(x, {{"a", 1.5}});
  report.receipt_body["quick"] = true;
  HONE_ASSERT_OK(write_receipt(report, run.receipts()));
  refused(add(x, report.receipt), "quick look");
}

TEST_F(Frontier, AnHonestPassOverSomeWorkloadsDoesNotAdmit) {
  Report report = fake_report(x, {{"a", 1.5}});
  report.of_task = 4;
  report.geomean.reset();
  report.geomean_ci.reset();
  report.receipt_body = fake_receipt(report, x, run.manifest.task_sha256);
  HONE_ASSERT_OK(write_receipt(report, run.receipts()));
  refused(add(x, report.receipt), "only some workloads");
}

TEST_F(Frontier, AReceiptWithoutAnIntervalDoesNotAdmit) {
  Report report = fake_report(x, {{"a", 1.5}});
  report.geomean_ci.reset();
  report.receipt_body = fake_receipt(report, x, run.manifest.task_sha256);
  HONE_ASSERT_OK(write_receipt(report, run.receipts()));
  refused(add(x, report.receipt), "no interval");
}

TEST_F(Frontier, AForgedReceiptDoesNotAdmit) {
  const std::string receipt = receipt_of(x, {{"a", 0.5}});
  const fs::path path = run.receipts() / (receipt + ".json");
  std::string text = read_file(path).value();
  const std::size_t at = text.find("0.5");
  ASSERT_NE(at, std::string::npos);
  text[at] = '9';
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(path) << text;
  refused(add(x, receipt), "was edited");
}

// The id is a plain hash, so a file that says anything can be made to hold the right one.
TEST_F(Frontier, AReceiptThatNoJudgementOfThisRunWroteDoesNotAdmit) {
  Report made_up = fake_report(x, {{"a", 42.0}}, Decision::keep);
  HONE_ASSERT_OK(write_receipt(made_up, run.worktree()));
  refused(add(x, made_up.receipt), "no judgement in this run's ledger wrote it");
  // In the place of an honest one, too.
  const std::string honest = receipt_of(x, {{"a", 1.01}});
  const fs::path path = run.receipts() / (honest + ".json");
  fs::remove(path);
  fs::copy_file(made_up.receipt, path);
  refused(add(x, honest), "was replaced");
  refused(add(x, path), "no judgement in this run's ledger wrote it");
  EXPECT_TRUE(entries().empty());
}

TEST_F(Frontier, FiguresThatTheSamplesDoNotGiveDoNotAdmit) {
  Report report = fake_report(x, {{"a", 1.1}, {"b", 1.2}});
  const json honest = report.receipt_body;
  const auto refused_with = [&](const char* place, double value, const std::string& reason) {
    report.receipt_body = honest;
    report.receipt_body[json::json_pointer(place)] = value;
    if (std::string(place) == "/report/geomean") report.geomean = value;
    HONE_ASSERT_OK(record_bench(run, report, x));
    refused(add(x, report.receipt), reason);
  };
  refused_with("/report/workloads/1/ratio", 42, "workload b has a ratio of 42");
  refused_with("/workloads/0/raw/candidate_s/0", 1e-5, "workload a has a ratio of 1.1");
  refused_with("/report/geomean", 42, "its geomean is 42");
}

TEST_F(Frontier, AnEmptiedLedgerIsNotBegunAnew) {
  receipt_of(x, {{"a", 1.1}});
  std::ofstream(run.ledger(), std::ios::trunc).close();
  HONE_ASSERT_OK(open_ledger(run));        // one receipt: its row may not have been written yet
  receipt_of(x, {{"a", 1.15}});
  HONE_ASSERT_OK(open_ledger(run));
  std::ofstream(run.ledger(), std::ios::trunc).close();
  HONE_EXPECT_ERROR(open_ledger(run), contract);
  Report report = fake_report(x, {{"a", 1.2}});
  HONE_EXPECT_ERROR(record_bench(run, report, x), contract);
  EXPECT_EQ(fs::file_size(run.ledger()), 0u);
}

TEST_F(Frontier, ReceiptsAreKnownByTheStartOfTheirIds) {
  const std::string receipt = receipt_of(x, {{"a", 1.1}});
  HONE_ASSERT_OK(read_receipt(receipt.substr(0, 8), run.receipts()));
  HONE_EXPECT_ERROR(read_receipt(receipt.substr(0, 7), run.receipts()), not_found);
  fs::copy_file(run.receipts() / (receipt + ".json"), run.receipts() / (receipt.substr(0, 12) + std::string(20, '0') + ".json"));
  HONE_EXPECT_ERROR(read_receipt(receipt.substr(0, 12), run.receipts()), usage);
  HONE_ASSERT_OK(read_receipt(receipt, run.receipts()));
}

TEST_F(Frontier, FastestFirstAndDropped) {
  HONE_ASSERT_OK(add(x, receipt_of(x, {{"a", 1.2}})));
  const auto left = y.with({{"MR", "4"}, {"SIDE", "right"}});
  HONE_ASSERT_OK(left);
  HONE_ASSERT_OK(add(*left, receipt_of(*left, {{"a", 1.3}})));
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_EQ(entries()[0].sha256, left->sha256);
  EXPECT_EQ(entries()[0].params.at("SIDE"), "right");
  const auto incumbent = incumbent_of(run);
  HONE_ASSERT_OK(incumbent);
  EXPECT_EQ(incumbent->value().sha256, left->sha256);
  auto ledger = Ledger::open(run.ledger());
  HONE_EXPECT_ERROR(frontier_drop(run, *ledger, "nobody", "", 0), not_found);
  HONE_ASSERT_OK(frontier_drop(run, *ledger, entries()[0].name, "regresses on a", 0));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(index()["entries"].size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(run.frontier()), fs::directory_iterator()), 2);
}

TEST_F(Frontier, FrozenValuesKeepTheIdentity) {
  const auto frozen = y.with({{"MR", "4"}, {"SIDE", "right"}});
  HONE_ASSERT_OK(add(*frozen, receipt_of(*frozen, {{"a", 1.3}})));
  const auto loaded = load_candidate(run.frontier() / entries()[0].name);
  HONE_ASSERT_OK(loaded);
  EXPECT_EQ(loaded->sha256, frozen->sha256);
  EXPECT_EQ(loaded->values, frozen->values);
  for (const TunableParameter& each : loaded->parameters) EXPECT_EQ(each.values.size(), 1u);
}

TEST_F(Frontier, NamesAreUniqueAndSafe) {
  HONE_ASSERT_OK(add(x, receipt_of(x, {{"a", 1.2}})));
  HONE_ASSERT_OK(add(x, receipt_of(x, {{"a", 1.25}})));   // measured again: replaced
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_DOUBLE_EQ(entries()[0].geomean, 1.25);
  std::ofstream(x.path / "kernel.cpp", std::ios::app) << "// another\n";
  const auto other = load_candidate(x.path);
  const std::string receipt = receipt_of(*other, {{"a", 1.3}});
  for (const char* name : {"../escape", "a/b", ".hidden", "-flag", "", "a b"})
    if (*name != '\0') HONE_EXPECT_ERROR(add(*other, receipt, name), usage);
  HONE_ASSERT_OK(add(*other, receipt));
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_NE(entries()[0].name, entries()[1].name);
}

TEST_F(Frontier, TheLedgerRestoresWhatAnAgentAltered) {
  HONE_ASSERT_OK(add(x, receipt_of(x, {{"a", 1.2}})));
  std::ofstream(run.frontier() / "x/kernel.cpp") << "// something else\n";
  fs::create_directories(run.frontier() / "smuggled");
  std::ofstream(run.frontier() / "smuggled/kernel.cpp") << "x";
  std::ofstream(run.frontier() / "index.json") << "{}";
  EXPECT_EQ(altered_entries(run, entries()), (std::vector<std::string>{"x", "index.json"}));
  HONE_ASSERT_OK(sync_frontier(run, read_ledger(run.ledger())->rows, "mend"));
  EXPECT_TRUE(altered_entries(run, entries()).empty());
  EXPECT_FALSE(fs::exists(run.frontier() / "smuggled"));
  EXPECT_EQ(index()["entries"].size(), 1u);
}

TEST_F(Frontier, FailedBenchesAreUnscoredRows) {
  receipt_of(x, {{"w1", 1.3}, {"w2", 1.2}, {"w3", std::nullopt}, {"w4", 1.4}});
  const LedgerRow row = read_ledger(run.ledger())->rows.back();
  EXPECT_EQ(row.data["scored"], false);
  EXPECT_TRUE(row.data["geomean"].is_null());
  EXPECT_EQ(row.data["passed"], 3);
  EXPECT_EQ(row.data["workloads"]["w1"]["ratio"], 1.3);   // nothing finished is thrown away
  EXPECT_EQ(row.data["workloads"]["w4"]["ratio"], 1.4);
  EXPECT_TRUE(entries().empty());
  const auto schema = schema_text("ledger");
  const std::string text = read_file(run.ledger()).value();
  HONE_ASSERT_OK(check_schema(json::parse(text), *schema, "row"));
}

}  // namespace
}  // namespace hone
