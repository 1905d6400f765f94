#include "run/fake_run.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "judge/body.h"
#include "run/frontier.h"
#include "run/git.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

constexpr const char* kTask = "toy";
constexpr const char* kTaskHash = "1111111111111111111111111111111111111111111111111111111111111111";

template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", to_text(result.error()));
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace

Run fake_run(const std::string& name) {
  Run run;
  run.root = scratch(name);
  Manifest& manifest = run.manifest;
  manifest.name = name;
  manifest.created = "2026-01-01T00:00:00.000Z";
  manifest.task = manifest.task_source = kTask;
  manifest.task_sha256 = kTaskHash;
  manifest.device = {{"name", "cpu"}};
  for (const fs::path& folder : {run.receipts(), run.scratch(), run.frontier()}) must(make_dirs(folder));
  must(write_manifest(manifest, run.root / "manifest.json"));
  must(write_file_atomic(run.frontier() / "index.json", frontier_index(run, {}).dump(2) + "\n"));
  must(Git(run.worktree()).init());
  must(Git(run.worktree()).commit({"."}, "first"));
  return run;
}

Candidate fake_candidate(const fs::path& parent, const std::string& name, const std::string& settings) {
  const fs::path folder = parent / name;
  must(make_dirs(folder));
  must(write_file_atomic(folder / "kernel.cpp", "// " + name + "\n"));
  must(write_file_atomic(folder / "plan.cpp", "#include <hone/plan.h>\n"));
  must(write_file_atomic(folder / "candidate.yaml", settings));
  return must(load_candidate(folder));
}

Report fake_report(const Candidate& candidate, const std::map<std::string, std::optional<double>>& ratios, std::optional<Decision> decision) {
  Report report;
  report.task = kTask;
  report.candidate = candidate.name;
  report.device = "cpu";
  double logs = 0;
  for (const auto& [id, ratio] : ratios) {
    WorkloadReport each;
    each.id = id;
    each.verdict = ratio ? Verdict::pass : Verdict::fail;
    each.ratio = ratio;
    each.baseline_s = 1e-3;
    if (ratio) {
      each.candidate_s = 1e-3 / *ratio;
      each.ratio_ci = Interval{*ratio * 0.99, *ratio * 1.01};
      logs += std::log(*ratio);
      ++report.passed;
    } else {
      each.error = make_error(ErrorKind::wrong_result, "row 3 differs");
    }
    ++report.total;
    report.workloads.push_back(std::move(each));
  }
  report.of_task = report.total;
  if (report.passed == report.total) {
    report.geomean = ratios.size() == 1 ? *ratios.begin()->second : std::exp(logs / report.total);
    // Exactly the value when all are equal, so that tests can compare.
    bool equal = true;
    for (const auto& [id, ratio] : ratios) equal = equal && ratio == ratios.begin()->second;
    if (equal) report.geomean = ratios.begin()->second;
    report.geomean_ci = Interval{*report.geomean * 0.99, *report.geomean * 1.01};
    report.decision = decision;
  }
  report.receipt_body = fake_receipt(report, candidate, kTaskHash);
  return report;
}

Report fake_error_report(const Candidate& candidate, const Error& error) {
  Report report = fake_report(candidate, {{"w1", std::nullopt}, {"w2", std::nullopt}});
  for (WorkloadReport& each : report.workloads) {
    each.verdict = Verdict::error;
    each.error = error;
  }
  report.receipt_body = fake_receipt(report, candidate, kTaskHash);
  return report;
}

nlohmann::json fake_receipt(const Report& report, const Candidate& candidate, const std::string& task_sha256) {
  nlohmann::json workloads = nlohmann::json::array();
  for (const WorkloadReport& each : report.workloads) {
    // One pair, which gives the ratio.
    nlohmann::json raw = {{"baseline_s", nlohmann::json::array()}, {"candidate_s", nlohmann::json::array()}, {"order", nlohmann::json::array()}, {"call", nlohmann::json::array()}, {"epoch", nlohmann::json::array()}};
    if (each.ratio) {
      raw["baseline_s"].push_back(*each.baseline_s);
      raw["candidate_s"].push_back(*each.candidate_s);
      raw["order"].push_back("bc");
      raw["call"].push_back(0);
      raw["epoch"].push_back(0);
    }
    workloads.push_back({{"id", each.id}, {"raw", std::move(raw)}});
  }
  nlohmann::json bench = to_json(report);
  bench.erase("receipt");
  return {{"schema", "hone.receipt/1"},
          {"hone", "0"},
          {"time", "2026-01-01T00:00:00.000Z"},
          {"task", {{"name", report.task}, {"sha256", task_sha256}, {"folder", "/nowhere"}}},
          {"report", std::move(bench)},
          {"candidate", candidate_body(candidate)},
          {"sandbox", "on"},
          {"device", {{"name", "cpu"}, {"model", "fake"}, {"architecture", "cpu"}}},
          {"seed", "1"},
          {"quick", false},
          {"policy", nlohmann::json::object()},
          {"binaries", {{"baselines", nlohmann::json::object()}}},
          {"seconds", nlohmann::json::object()},
          {"workloads", std::move(workloads)}};
}

}  // namespace hone::testing
