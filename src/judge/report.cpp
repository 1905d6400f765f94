#include "judge/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace hone {
namespace {

using json = nlohmann::json;

json number(std::optional<double> value, double scale = 1) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value * scale;
}

json interval(const std::optional<Interval>& value) {
  if (!value) return nullptr;
  return json::array({number(value->low), number(value->high)});
}

std::string cell(const std::optional<double>& seconds) { return seconds ? fmt::format("{:.2f}", 1e6 * *seconds) : "-"; }

std::string ratio_cell(const std::optional<double>& ratio, const std::optional<Interval>& ci) {
  if (!ratio) return "-";
  if (!ci) return fmt::format("{:.3f} [no interval]", *ratio);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", *ratio, ci->low, ci->high);
}

// Columns as wide as their widest cell; numbers to the right, the last column free.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> width(right.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += right[i] ? fmt::format("{:>{}}  ", row[i], width[i]) : fmt::format("{:<{}}  ", row[i], width[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

// A workload's note column: what went wrong in a word, then its notes.
std::string note_cell(const WorkloadReport& workload) {
  std::string out = workload.error ? std::string(name_of(workload.error->kind)) : workload.baseline.empty() ? "" : "vs " + workload.baseline;
  for (const std::string& note : workload.notes) out += (out.empty() ? "" : "; ") + note;
  return out;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "PASS";
    case Verdict::fail: return "FAIL";
    case Verdict::flaky: return "FLAKY";
    case Verdict::error: return "ERROR";
  }
  return "?";
}

std::string_view name_of(Decision decision) {
  switch (decision) {
    case Decision::keep: return "KEEP";
    case Decision::reject: return "REJECT";
    case Decision::ambiguous: return "AMBIGUOUS";
  }
  return "?";
}

int Report::exit_code() const {
  if (cancelled) return exit_code_of(ErrorKind::cancelled);
  return passed == total && total > 0 ? 0 : 1;
}

json to_json(const WorkloadReport& workload) {
  json error = nullptr;
  if (workload.error) to_json(error, *workload.error);
  return {{"id", workload.id},
          {"verdict", name_of(workload.verdict)},
          {"error", std::move(error)},
          {"baseline", workload.baseline.empty() ? json(nullptr) : json{{"name", workload.baseline}, {"describe", workload.baseline_text}}},
          {"baseline_us", number(workload.baseline_s, 1e6)},
          {"candidate_us", number(workload.candidate_s, 1e6)},
          {"ratio", number(workload.ratio)},
          {"ratio_ci", interval(workload.ratio_ci)},
          {"samples", workload.samples},
          {"notes", workload.notes}};
}

json to_json(const Report& report) {
  json workloads = json::array();
  for (const WorkloadReport& workload : report.workloads) workloads.push_back(to_json(workload));
  return {{"schema", "hone.bench/1"},
          {"task", report.task},
          {"candidate", report.candidate},
          {"device", report.device},
          {"passed", report.passed},
          {"total", report.total},
          {"of_task", report.of_task},
          {"cancelled", report.cancelled},
          {"geomean", number(report.geomean)},
          {"geomean_ci", interval(report.geomean_ci)},
          {"incumbent_geomean", number(report.incumbent_geomean)},
          {"incumbent_geomean_ci", interval(report.incumbent_geomean_ci)},
          {"decision", report.decision ? json(name_of(*report.decision)) : json(nullptr)},
          {"notes", report.notes},
          {"receipt", report.receipt.empty() ? json(nullptr) : json(report.receipt)},
          {"workloads", std::move(workloads)}};
}

Result<Report> report_from_json(const json& in) {
  const auto real = [](const json& value) { return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt; };
  const auto range = [](const json& value) {
    return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number()
               ? std::optional<Interval>(Interval{value[0].get<double>(), value[1].get<double>()})
               : std::nullopt;
  };
  try {
    if (in.at("schema") != "hone.bench/1") return fail(ErrorKind::contract, "this is no hone.bench/1: {}", in.at("schema").dump());
    Report out;
    out.task = in.at("task").get<std::string>();
    out.candidate = in.at("candidate").get<std::string>();
    out.device = in.at("device").get<std::string>();
    out.passed = in.at("passed").get<int>();
    out.total = in.at("total").get<int>();
    out.of_task = in.at("of_task").get<int>();
    out.cancelled = in.at("cancelled").get<bool>();
    if (in.contains("notes")) out.notes = in.at("notes").get<std::vector<std::string>>();
    out.geomean = real(in.at("geomean"));
    out.geomean_ci = range(in.at("geomean_ci"));
    out.incumbent_geomean = real(in.at("incumbent_geomean"));
    out.incumbent_geomean_ci = range(in.at("incumbent_geomean_ci"));
    for (const Decision each : {Decision::keep, Decision::reject, Decision::ambiguous})
      if (in.at("decision") == name_of(each)) out.decision = each;
    for (const json& row : in.at("workloads")) {
      WorkloadReport workload;
      workload.id = row.at("id").get<std::string>();
      for (const Verdict each : {Verdict::pass, Verdict::fail, Verdict::flaky, Verdict::error})
        if (row.at("verdict") == name_of(each)) workload.verdict = each;
      if (row.at("error").is_object()) from_json(row.at("error"), workload.error.emplace());
      if (const json& baseline = row.at("baseline"); baseline.is_object()) {
        workload.baseline = baseline.at("name").get<std::string>();
        workload.baseline_text = baseline.at("describe").get<std::string>();
      }
      const auto seconds = [&](const char* key) {
        const auto us = real(row.at(key));
        return us ? std::optional<double>(*us * 1e-6) : std::nullopt;
      };
      workload.baseline_s = seconds("baseline_us");
      workload.candidate_s = seconds("candidate_us");
      workload.ratio = real(row.at("ratio"));
      workload.ratio_ci = range(row.at("ratio_ci"));
      workload.samples = row.at("samples").get<int>();
      workload.notes = row.at("notes").get<std::vector<std::string>>();
      out.workloads.push_back(std::move(workload));
    }
    return out;
  } catch (const json::exception& error) {
    return fail(ErrorKind::contract, "this is no hone.bench/1: {}", error.what());
  }
}

std::string to_text(const Report& report) {
  std::vector<std::vector<std::string>> rows = {{"workload", "verdict", "baseline us", "candidate us", "ratio [95%]", "samples", "note"}};
  std::vector<std::pair<std::string, std::string>> errors;   // text, workloads
  for (const WorkloadReport& workload : report.workloads) {
    rows.push_back({workload.id, std::string(name_of(workload.verdict)), cell(workload.baseline_s), cell(workload.candidate_s),
                    ratio_cell(workload.ratio, workload.ratio_ci), std::to_string(workload.samples), note_cell(workload)});
    if (!workload.error) continue;
    const std::string text = to_text(*workload.error);
    const auto same = std::find_if(errors.begin(), errors.end(), [&](const auto& entry) { return entry.first == text; });
    if (same == errors.end()) errors.emplace_back(text, workload.id);
    else same->second += ", " + workload.id;
  }
  std::string out = table(rows, {false, false, true, true, true, true, false});
  if (!errors.empty()) out += "\n";
  for (const auto& [text, workloads] : errors) {
    out += text;
    if (!out.ends_with('\n')) out += '\n';
    out += "  on workload " + workloads + "\n";
  }
  out += "\n";
  std::set<std::string> baselines;
  for (const WorkloadReport& workload : report.workloads)
    if (!workload.baseline_text.empty()) baselines.insert(fmt::format("{} is {}\n", workload.baseline, workload.baseline_text));
  for (const std::string& line : baselines) out += line;
  for (const std::string& note : report.notes) out += note + "\n";
  out += fmt::format("passed: {}/{}\n", report.passed, report.total);
  if (report.geomean) {
    out += "geomean: " + ratio_cell(report.geomean, report.geomean_ci) + " baseline time / candidate time\n";
    if (report.incumbent_geomean)
      out += "against the incumbent: " + ratio_cell(report.incumbent_geomean, report.incumbent_geomean_ci) + "\n";
  } else if (report.passed == report.total && report.total < report.of_task) {
    out += fmt::format("geomean: none, {} of the task's {} workloads were judged\n", report.total, report.of_task);
  }
  if (report.decision) out += fmt::format("decision: {}\n", name_of(*report.decision));
  else if (report.geomean && !report.geomean_ci && report.candidate != "baseline")
    out += "decision: none, there were too few samples for an interval; measure with a larger --budget time=\n";
  if (report.cancelled) out += "cancelled: what had finished is above\n";
  if (!report.receipt.empty()) out += "receipt: " + report.receipt + "\n";
  return out;
}

}  // namespace hone
