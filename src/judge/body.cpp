#include "judge/body.h"

#include <cmath>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"

namespace hone {
namespace {

using json = nlohmann::json;

json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json interval(const std::optional<Interval>& value) {
  return value ? json::array({value->low, value->high}) : json(nullptr);
}

// Columns, since a row each would repeat the names thousands of times. Seconds.
json raw_body(const std::vector<RawPair>& raw) {
  json out = {{"baseline_s", json::array()}, {"candidate_s", json::array()}, {"order", json::array()}, {"call", json::array()}, {"epoch", json::array()}};
  for (const RawPair& pair : raw) {
    out["baseline_s"].push_back(pair.baseline);
    out["candidate_s"].push_back(pair.candidate);
    if (pair.incumbent) out["incumbent_s"].push_back(*pair.incumbent);
    out["order"].push_back(pair.order);
    out["call"].push_back(pair.call);
    out["epoch"].push_back(pair.epoch);
  }
  return out;
}

json policy_body(const TimingPolicy& policy) {
  return {{"warmup_s", policy.warmup_s}, {"min_effect", policy.min_effect}, {"target_halfwidth", policy.target_halfwidth},
          {"min_pairs", policy.min_pairs}, {"max_pairs", policy.max_pairs}, {"budget_s", policy.budget_s}};
}

}  // namespace

json candidate_body(const Candidate& candidate) {
  json sources = json::object();
  for (const auto& [name, bytes] : candidate.sources)
    sources[name] = is_utf8(bytes) ? json{{"text", bytes}} : json{{"hex", to_hex(bytes)}};
  json parameters = json::array();
  for (const TunableParameter& parameter : candidate.parameters) parameters.push_back({{"name", parameter.name}, {"values", parameter.values}});
  return {{"name", candidate.name}, {"sha256", candidate.sha256}, {"language", candidate.language},
          {"compiler", candidate.compiler}, {"flags", candidate.flags}, {"parameters", std::move(parameters)},
          {"constraints", candidate.constraints}, {"values", candidate.values}, {"sources", std::move(sources)},
          {"notes", is_utf8(candidate.notes) ? candidate.notes : std::string()}};
}

json receipt_body(const Report& report, BodyParts parts) {
  const DeviceInfo& device = parts.bench.device.info();
  json out = {{"schema", "hone.receipt/1"},
              {"hone", HONE_VERSION},
              {"time", utc_timestamp()},
              {"task", {{"name", parts.task.name}, {"sha256", parts.task.sha256}, {"folder", parts.task.folder.string()}}},
              {"report", to_json(report)},
              {"candidate", parts.request.candidate ? candidate_body(*parts.request.candidate) : json(nullptr)},
              {"incumbent", parts.request.incumbent ? json{{"name", parts.request.incumbent->name}, {"sha256", parts.request.incumbent->sha256}} : json(nullptr)},
              {"sandbox", parts.bench.sandbox.mode() == SandboxMode::on ? "on" : "off"},
              {"device", {{"name", device.name}, {"model", device.model}, {"architecture", device.architecture}, {"workers", device.workers},
                          {"cache_bytes", device.cache_bytes}, {"peak_flops", finite(device.peak_flops)}, {"peak_bytes", finite(device.peak_bytes)},
                          {"facts", device.facts}}},
              {"seed", std::to_string(parts.seed)},
              {"quick", parts.request.quick},
              {"policy", policy_body(parts.task.timing)},
              {"binaries", std::move(parts.binaries)},
              {"seconds", std::move(parts.seconds)},
              {"incumbent_geomean", report.incumbent_geomean ? finite(*report.incumbent_geomean) : json(nullptr)},
              {"incumbent_geomean_ci", interval(report.incumbent_geomean_ci)}};
  out["report"].erase("receipt");                 // a receipt does not know where it lies
  json workloads = json::array();
  for (std::size_t i = 0; i < report.workloads.size(); ++i) {
    const WorkloadReport& workload = report.workloads[i];
    json facts = i < parts.workloads.size() ? std::move(parts.workloads[i]) : json::object();
    facts["id"] = workload.id;
    facts["gate"] = {{"value", finite(workload.gate_value)}, {"limit", finite(workload.gate_limit)}};
    facts["floor_s"] = finite(workload.floor_s);
    facts["warmup_s"] = workload.warmup_s;
    facts["control_ci"] = interval(workload.control_ci);
    facts["incumbent_ratio"] = workload.incumbent_ratio ? finite(*workload.incumbent_ratio) : json(nullptr);
    facts["incumbent_ci"] = interval(workload.incumbent_ci);
    facts["raw"] = raw_body(workload.raw);
    workloads.push_back(std::move(facts));
  }
  out["workloads"] = std::move(workloads);
  return out;
}

}  // namespace hone
