// Geomean rules, report text and JSON, receipts.
#include "judge/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/yaml.h"
#include "judge/body.h"
#include "judge/conclude.h"
#include "judge/receipt.h"
#include "testing/testing.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

WorkloadOutcome outcome(const std::string& id, std::optional<double> ratio) {
  WorkloadOutcome out;
  out.report.id = id;
  out.report.verdict = ratio ? Verdict::pass : Verdict::fail;
  if (!ratio) {
    out.report.error = make_error(ErrorKind::wrong_result, "D: wrong");
    return out;
  }
  out.report.ratio = ratio;
  out.report.baseline_s = *ratio * 1e-3;
  out.report.candidate_s = 1e-3;
  Series series;
  for (int i = 0; i < 40; ++i) series.x.push_back(std::log(*ratio) + 1e-4 * (i % 5 - 2)), series.epoch.push_back(static_cast<std::uint32_t>(i / 10));
  out.ratio = estimate(series, 1);
  out.report.ratio_ci = ratio_interval(*out.ratio, 0.95);
  out.report.samples = 40;
  return out;
}

Report concluded(const std::vector<std::optional<double>>& ratios, int of_task, bool decides = true) {
  Report report;
  std::vector<WorkloadOutcome> outcomes;
  for (const auto& ratio : ratios) outcomes.push_back(outcome("w" + std::to_string(outcomes.size() + 1), ratio));
  report.task = "t";
  report.candidate = "c";
  report.device = "fake";
  report.total = static_cast<int>(ratios.size());
  report.of_task = of_task;
  for (const auto& each : outcomes) report.passed += each.report.verdict == Verdict::pass;
  conclude(outcomes, 0.002, false, decides, report);
  for (auto& each : outcomes) report.workloads.push_back(std::move(each.report));
  return report;
}

// C07: three wins and a failure are no figure at all.
TEST(Report, GeomeanOnlyWhenAllPass) {
  const Report all = concluded({1.1, 1.1, 1.1, 1.1}, 4);
  EXPECT_NEAR(*all.geomean, 1.1, 1e-3);
  EXPECT_EQ(all.decision, Decision::keep);
  EXPECT_EQ(all.exit_code(), 0);
  const Report some = concluded({2.0, 2.0, 2.0, std::nullopt}, 4);
  EXPECT_FALSE(some.geomean || some.geomean_ci || some.decision);
  EXPECT_EQ(some.exit_code(), 1);
  const nlohmann::json json = to_json(some);
  EXPECT_TRUE(json["geomean"].is_null() && json["geomean_ci"].is_null() && json["decision"].is_null());
  EXPECT_THAT(to_text(some), HasSubstr("passed: 3/4"));
  EXPECT_THAT(to_text(some), Not(HasSubstr("geomean")));
  EXPECT_THAT(to_text(some), Not(HasSubstr("1.68")));
}

TEST(Report, APartOfTheTaskHasNoGeomean) {
  const Report part = concluded({1.5, 1.5}, 4);
  EXPECT_FALSE(part.geomean || part.decision);
  EXPECT_THAT(to_text(part), HasSubstr("2 of the task's 4 workloads"));
}

TEST(Report, QuickNeverDecides) {
  const Report quick = concluded({1.5, 1.5}, 2, false);
  EXPECT_TRUE(quick.geomean_ci);
  EXPECT_FALSE(quick.decision);
}

TEST(Report, SlowerIsRejectedAndOpposedWorkloadsAverage) {
  EXPECT_EQ(concluded({0.9, 0.95}, 2).decision, Decision::reject);
  EXPECT_NEAR(*concluded({2.0, 0.5}, 2).geomean, 1, 1e-3);
  EXPECT_EQ(concluded({2.0, 0.5}, 2).decision, Decision::ambiguous);
}

TEST(Report, TextHasARowEachAndLocatedErrorsOnce) {
  Report report = concluded({1.1, std::nullopt, std::nullopt}, 3);
  for (auto& workload : report.workloads)
    if (workload.error) workload.error->place = {"kernel.cpp", 3, 7};
  report.receipt = "/r/1.json";
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("w1"));
  EXPECT_THAT(text, HasSubstr("1100.00"));
  const auto first = text.find("kernel.cpp:3:7: error(wrong_result): D: wrong");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("kernel.cpp:3:7", first + 1), std::string::npos);
  EXPECT_THAT(text, HasSubstr("on workload w2, w3"));
  EXPECT_TRUE(text.ends_with("receipt: /r/1.json\n"));
}

TEST(Report, JsonFollowsItsSchemaAndHoldsNoInfinity) {
  Report report = concluded({1.1, std::nullopt}, 2);
  report.workloads[0].ratio = std::numeric_limits<double>::infinity();
  report.workloads[0].candidate_s = std::numeric_limits<double>::quiet_NaN();
  const nlohmann::json json = to_json(report);
  EXPECT_TRUE(json["workloads"][0]["ratio"].is_null());
  auto schema = read_file(testing::source_dir() / "share/schema/bench.json");
  HONE_ASSERT_OK(schema);
  const auto checked = check_schema(json, *schema, "bench");
  HONE_ASSERT_OK(checked);
}

TEST(Report, CancelledExitsWithFour) {
  Report report = concluded({1.1}, 1);
  report.cancelled = true;
  EXPECT_EQ(report.exit_code(), 4);
}

Candidate candidate() {
  Candidate out;
  out.name = "c";
  out.sources = {{"kernel.cpp", "void k() {}\n"}, {"plan.cpp", std::string("bytes \xff\xfe\0x", 10)}};
  out.flags = {"-O2"};
  out.parameters = {{"TILE", {"4", "8"}}};
  out.values = {{"TILE", "4"}};
  return *out.with({{"TILE", "8"}});
}

nlohmann::json body() {
  Report report = concluded({1.1}, 1);
  nlohmann::json out = {{"schema", "hone.receipt/1"}, {"hone", "0"}, {"time", "t"},
                        {"task", {{"name", "t"}, {"sha256", std::string(64, 'a')}, {"folder", "/t"}}},
                        {"report", to_json(report)}, {"candidate", candidate_body(candidate())}, {"sandbox", "on"},
                        {"device", {{"name", "cpu"}, {"model", "m"}, {"architecture", "cpu"}}}, {"seed", "18446744073709551615"}, {"policy", nlohmann::json::object()},
                        {"binaries", {{"baselines", nlohmann::json::object()}}}, {"seconds", nlohmann::json::object()}, {"workloads", nlohmann::json::array()}};
  return out;
}

class Receipts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = testing::scratch("receipts");
    report.receipt_body = body();
    const auto written = write_receipt(report, folder);
    HONE_ASSERT_OK(written);
  }
  std::string text() { return *read_file(report.receipt); }
  fs::path folder;
  Report report;
};

TEST_F(Receipts, ReadBackByPathAndById) {
  const auto by_path = read_receipt(report.receipt, "/nowhere");
  HONE_ASSERT_OK(by_path);
  const auto by_id = read_receipt((*by_path)["id"].get<std::string>(), folder);
  HONE_ASSERT_OK(by_id);
  EXPECT_EQ(*by_path, *by_id);
  const auto found = candidate_of(*by_path);
  HONE_ASSERT_OK(found);
  EXPECT_EQ(found->sources, candidate().sources);
  EXPECT_EQ(found->sha256, candidate().sha256);
  EXPECT_EQ(found->values, candidate().values);
}

TEST_F(Receipts, AnyEditIsSeen) {
  std::string edited = text();
  const auto at = edited.find("\"geomean\": 1.1");
  ASSERT_NE(at, std::string::npos);
  edited[at + 11] = '9';
  ASSERT_TRUE(write_file_atomic(report.receipt, edited));
  const auto read = read_receipt(report.receipt, folder);
  HONE_EXPECT_ERROR(read, contract);
  EXPECT_THAT(read.error().message, HasSubstr("edited"));
  EXPECT_EQ(exit_code_of(read.error().kind), 2);
}

TEST_F(Receipts, HostileFiles) {
  for (const std::string& bytes : {std::string(), std::string("[]"), std::string("{\"schema\":\"hone.receipt/1\"}"), std::string("{\"a\":"), text().substr(0, text().size() / 2),
                                   std::string(1000, '[')}) {
    ASSERT_TRUE(write_file_atomic(folder / "x.json", bytes));
    const auto read = read_receipt((folder / "x.json").string(), folder);
    HONE_EXPECT_ERROR(read, contract);
  }
  HONE_EXPECT_ERROR(read_receipt("no/such/file", folder), not_found);
}

TEST_F(Receipts, SourcesMustStayInTheirFolder) {
  for (const char* name : {"../evil", "/etc/evil", "a/../../evil", ""}) {
    nlohmann::json evil = body();
    evil["candidate"]["sources"][name] = {{"text", "x"}};
    HONE_EXPECT_ERROR(candidate_of(evil), contract);
  }
  nlohmann::json swapped = body();
  swapped["candidate"]["sources"]["kernel.cpp"] = {{"text", "void other() {}\n"}};
  HONE_EXPECT_ERROR(candidate_of(swapped), contract);
}

}  // namespace
}  // namespace hone
