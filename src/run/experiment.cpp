#include "run/experiment.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace hone {
namespace {

using nlohmann::json;

json interval_json(const std::optional<Interval>& interval) {
  return interval ? json{interval->low, interval->high} : json();
}

std::optional<Interval> interval_from(const json& in, const char* key) {
  const auto found = in.find(key);
  if (found == in.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number() || !(*found)[1].is_number())
    return std::nullopt;
  return Interval{(*found)[0].get<double>(), (*found)[1].get<double>()};
}

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

std::optional<double> number_from(const json& in, const char* key) {
  const auto found = in.find(key);
  return found != in.end() && found->is_number() ? std::optional<double>(found->get<double>()) : std::nullopt;
}

std::string text_from(const json& in, const char* key) {
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<Error> error_from(const json& in) {
  const auto found = in.find("error");
  if (found == in.end() || !found->is_object()) return std::nullopt;
  Error error;
  error.kind = error_kind_from(text_from(*found, "kind"));
  error.message = text_from(*found, "message");
  error.hint = text_from(*found, "hint");
  if (const auto place = found->find("place"); place != found->end() && place->is_object()) {
    error.place.file = text_from(*place, "file");
    error.place.line = static_cast<int>(number_from(*place, "line").value_or(0));
    error.place.column = static_cast<int>(number_from(*place, "column").value_or(0));
  }
  if (const auto notes = found->find("notes"); notes != found->end() && notes->is_array())
    for (const json& note : *notes)
      if (note.is_string()) error.notes.push_back(note.get<std::string>());
  return error;
}

// Compiler output can be long; a row needs what a person reads first.
Error bounded(Error error) {
  auto cut = [](std::string& text, std::size_t limit) {
    if (text.size() > limit) text = text.substr(0, limit) + " ...";
  };
  cut(error.message, 2000);
  cut(error.hint, 1000);
  if (error.notes.size() > 20) error.notes.resize(20);
  for (std::string& note : error.notes) cut(note, 500);
  return error;
}

}  // namespace

void to_json(json& out, const Experiment& experiment) {
  json workloads = json::object();
  for (const auto& [id, each] : experiment.workloads) {
    workloads[id] = {{"verdict", each.verdict},
                     {"ratio", optional_json(each.ratio)},
                     {"ratio_ci", interval_json(each.ratio_ci)},
                     {"baseline_s", optional_json(each.baseline_s)},
                     {"candidate_s", optional_json(each.candidate_s)}};
    if (each.error) workloads[id]["error"] = *each.error;
  }
  out = {{"candidate", experiment.candidate},
         {"sha256", experiment.sha256},
         {"params", experiment.params},
         {"parent", experiment.parent},
         {"idea", experiment.idea},
         {"family", experiment.family},
         {"scored", experiment.scored},
         {"passed", experiment.passed},
         {"total", experiment.total},
         {"workloads", workloads},
         {"geomean", optional_json(experiment.geomean)},
         {"geomean_ci", interval_json(experiment.geomean_ci)},
         {"decision", experiment.decision.empty() ? json() : json(experiment.decision)},
         {"receipt", experiment.receipt.empty() ? json() : json(experiment.receipt)},
         {"device", experiment.device},
         {"error", experiment.error ? json(*experiment.error) : json()},
         {"attempts", experiment.attempts},
         {"seconds", experiment.seconds}};
}

void from_json(const json& in, Experiment& experiment) {
  experiment = {};
  if (!in.is_object()) return;
  experiment.candidate = text_from(in, "candidate");
  experiment.sha256 = text_from(in, "sha256");
  experiment.parent = text_from(in, "parent");
  experiment.idea = text_from(in, "idea");
  experiment.family = text_from(in, "family");
  experiment.decision = text_from(in, "decision");
  experiment.receipt = text_from(in, "receipt");
  experiment.device = text_from(in, "device");
  if (const auto params = in.find("params"); params != in.end() && params->is_object())
    for (const auto& [name, value] : params->items())
      if (value.is_string()) experiment.params[name] = value.get<std::string>();
  experiment.passed = static_cast<int>(number_from(in, "passed").value_or(0));
  experiment.total = static_cast<int>(number_from(in, "total").value_or(0));
  experiment.attempts = static_cast<int>(number_from(in, "attempts").value_or(1));
  experiment.seconds = number_from(in, "seconds").value_or(0);
  experiment.geomean = number_from(in, "geomean");
  experiment.geomean_ci = interval_from(in, "geomean_ci");
  experiment.error = error_from(in);
  if (const auto workloads = in.find("workloads"); workloads != in.end() && workloads->is_object())
    for (const auto& [id, each] : workloads->items()) {
      if (!each.is_object()) continue;
      WorkloadResult& result = experiment.workloads[id];
      result.verdict = text_from(each, "verdict");
      result.ratio = number_from(each, "ratio");
      result.baseline_s = number_from(each, "baseline_s");
      result.candidate_s = number_from(each, "candidate_s");
      result.ratio_ci = interval_from(each, "ratio_ci");
      result.error = error_from(each);
    }
  // Not taken from the file: a row is scored because everything passed, not because it says so.
  experiment.scored = experiment.geomean && experiment.total > 0 && experiment.passed == experiment.total;
  if (!experiment.scored) experiment.geomean.reset(), experiment.geomean_ci.reset(), experiment.decision.clear();
}

Experiment experiment_of(const Report& report, const Candidate& candidate) {
  Experiment experiment;
  experiment.candidate = candidate.name;
  experiment.sha256 = candidate.sha256;
  experiment.params = candidate.values;
  experiment.family = candidate.name;
  experiment.passed = report.passed;
  experiment.total = report.total;
  experiment.device = report.device;
  experiment.scored = report.total > 0 && report.passed == report.total && report.geomean && *report.geomean > 0;
  if (experiment.scored) {
    experiment.geomean = report.geomean;
    experiment.geomean_ci = report.geomean_ci;
    if (report.decision) experiment.decision = name_of(*report.decision);
  }
  for (const WorkloadReport& each : report.workloads) {
    WorkloadResult& result = experiment.workloads[each.id];
    result.verdict = name_of(each.verdict);
    result.baseline_s = each.baseline_s;
    // A kernel that did not do the work has no time worth keeping.
    if (each.verdict == Verdict::pass) {
      result.candidate_s = each.candidate_s;
      result.ratio = each.ratio;
      result.ratio_ci = each.ratio_ci;
    }
    if (each.error) {
      result.error = bounded(*each.error);
      if (!experiment.error) experiment.error = result.error;
    }
  }
  if (!report.receipt.empty()) experiment.receipt = fs::path(report.receipt).stem().string();
  return experiment;
}

Experiment failed_experiment(const Error& error, const Candidate& candidate, int total) {
  Experiment experiment;
  experiment.candidate = candidate.name;
  experiment.sha256 = candidate.sha256;
  experiment.params = candidate.values;
  experiment.family = candidate.name;
  experiment.total = total;
  experiment.error = bounded(error);
  return experiment;
}

std::string params_text(const Parameters& params) {
  std::string text;
  for (const auto& [name, value] : params) {
    if (!text.empty()) text += " ";
    text += name + "=" + value;
  }
  return text.empty() ? "-" : text;
}

}  // namespace hone
