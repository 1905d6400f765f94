#include "run/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "run/record.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kShownFaults = 3;
constexpr std::size_t kLastRows = 5;

json interval_json(const std::optional<Interval>& interval) {
  return interval ? json{interval->low, interval->high} : json();
}

std::string ratio_text(double ratio, const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:.3f}x [{:.3f}, {:.3f}]", ratio, interval->low, interval->high) : fmt::format("{:.3f}x", ratio);
}

// "PASS 1.310x", "ERROR(timeout): no end after 10 s", "FAIL 3/4 (wrong_result): row 3 differs".
std::string verdict_text(const Experiment& experiment) {
  if (experiment.scored) return "PASS " + ratio_text(*experiment.geomean, experiment.geomean_ci);
  std::string text = experiment.total > 0 ? fmt::format("{}/{} passed", experiment.passed, experiment.total) : "not judged";
  if (experiment.error) {
    std::string message = experiment.error->message.substr(0, experiment.error->message.find('\n'));
    if (message.size() > 160) message = message.substr(0, 157) + "...";
    text += fmt::format(", {}: ", name_of(experiment.error->kind));
    if (!experiment.error->place.file.empty()) {
      text += experiment.error->place.file;
      if (experiment.error->place.line > 0) text += fmt::format(":{}", experiment.error->place.line);
      text += ": ";
    }
    text += message;
  }
  return text;
}

struct Experimented {
  const Recorded* recorded;
  const char* kind;                  // search, remeasure, bench
};

// All experiments in the ledger's order.
std::vector<Experimented> experiments_of(const RunProgress& progress) {
  std::vector<Experimented> all;
  for (const Recorded& each : progress.evaluations) all.push_back({&each, "search"});
  for (const Recorded& each : progress.remeasures) all.push_back({&each, "remeasure"});
  for (const Recorded& each : progress.benches) all.push_back({&each, "bench"});
  std::sort(all.begin(), all.end(), [](const Experimented& a, const Experimented& b) { return a.recorded->row < b.recorded->row; });
  return all;
}

json experiment_json(const Experimented& each) {
  json out = each.recorded->experiment;
  out["row"] = each.recorded->row;
  out["time"] = each.recorded->time;
  out["elapsed_s"] = each.recorded->elapsed_s;
  out["kind"] = each.kind;
  out["by"] = each.recorded->by;
  return out;
}

json best_json(const RunProgress& progress) {
  const Recorded* best = progress.best();
  if (best == nullptr) return nullptr;
  const Experiment& experiment = best->experiment;
  const auto again = std::count_if(progress.remeasures.begin(), progress.remeasures.end(),
                                   [&](const Recorded& each) { return each.experiment.sha256 == experiment.sha256; });
  return {{"row", best->row},
          {"candidate", experiment.candidate},
          {"sha256", experiment.sha256},
          {"params", experiment.params},
          {"geomean", *experiment.geomean},
          {"geomean_ci", interval_json(experiment.geomean_ci)},
          {"receipt", experiment.receipt.empty() ? json() : json(experiment.receipt)},
          {"remeasured", again}};
}

json entry_json(const FrontierEntry& entry) {
  json out = entry;
  out["row"] = entry.row;
  return out;
}

json faults_json(const LedgerText& ledger) {
  json faults = json::array();
  for (const Error& each : ledger.faults) faults.push_back(each);
  return faults;
}

std::string reason_of(const RunProgress& progress) {
  if (!progress.ended) return "";
  const auto reason = progress.ended->data.find("reason");
  return reason != progress.ended->data.end() && reason->is_string() ? reason->get<std::string>() : std::string();
}

// A cell of a Markdown table.
std::string cell(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += "\\|";
    else out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string state_line(const Summary& summary) {
  std::string text = summary.state;
  if (const std::string reason = reason_of(summary.progress); summary.state == "ended" && !reason.empty())
    text += fmt::format(": {} (row {})", reason, summary.progress.ended->seq);
  return text;
}

}  // namespace

Result<Summary> summarize(const Run& run) {
  HONE_TRY(LedgerText ledger, read_ledger(run.ledger()));
  Summary summary{run, std::move(ledger), {}, {}, ""};
  summary.progress = progress_of(summary.ledger.rows);
  summary.frontier = frontier_of(summary.ledger.rows);
  bool running = false;
  std::error_code code;
  if (auto error = emptied(run, summary.ledger.rows, summary.ledger.faults)) summary.ledger.faults.push_back(*std::move(error));
  if (fs::exists(run.lock(), code)) {
    const auto lock = FileLock::try_acquire(run.lock());
    running = !lock && lock.error().message == "busy";
  }
  summary.state = running ? "running" : !summary.progress.started ? "new" : summary.progress.ended ? "ended" : "interrupted";
  return summary;
}

std::string spent_text(const RunProgress& progress) {
  const auto used = progress.evaluations.size();
  const auto limit = progress.budget.evaluations();
  std::string text = limit ? fmt::format("evaluations {}/{}", used, *limit) : fmt::format("evaluations {}", used);
  text += ", " + format_duration(progress.elapsed_s);
  if (const auto seconds = progress.budget.seconds()) text += "/" + format_duration(*seconds);
  const Turns& turns = progress.turns;
  const auto part = [&](const char* key, const std::string& amount, bool shown, int unknown) {
    const auto limit_of_it = progress.budget.limit(key);
    if (!limit_of_it && !shown) return;
    text += fmt::format(", {} {}", key, amount);
    if (limit_of_it) text += fmt::format("/{}", *limit_of_it);
    if (unknown > 0) text += fmt::format(" (unknown for {} turn{})", unknown, unknown == 1 ? "" : "s");
  };
  part("turns", std::to_string(turns.counted()), !turns.all.empty(), 0);
  part("tokens", std::to_string(turns.tokens()), turns.tokens() > 0, turns.unknown_tokens());
  part("cost", fmt::format("{:.4g}", turns.cost()), turns.cost() > 0, turns.unknown_cost());
  return text;
}

json status_json(const Summary& summary) {
  const RunProgress& progress = summary.progress;
  const auto limit = progress.budget.evaluations();
  const auto seconds = progress.budget.seconds();
  json last = json::array();
  const auto all = experiments_of(progress);
  for (std::size_t i = all.size() - std::min(all.size(), kLastRows); i < all.size(); ++i) {
    const Experiment& experiment = all[i].recorded->experiment;
    last.push_back({{"row", all[i].recorded->row},
                    {"kind", all[i].kind},
                    {"candidate", experiment.candidate},
                    {"params", experiment.params},
                    {"passed", experiment.passed},
                    {"total", experiment.total},
                    {"geomean", experiment.geomean ? json(*experiment.geomean) : json()},
                    {"error", experiment.error ? json(*experiment.error) : json()}});
  }
  const std::string reason = reason_of(progress);
  return {{"schema", "hone.status/1"},
          {"run", summary.run.root.string()},
          {"name", summary.run.manifest.name},
          {"task", summary.run.manifest.task},
          {"state", summary.state},
          {"reason", summary.state == "ended" && !reason.empty() ? json(reason) : json()},
          {"agent", progress.agent.empty() ? json() : json(progress.agent)},
          {"seed", progress.started ? json(progress.seed) : json(summary.run.manifest.seed)},
          {"target", progress.target ? json(*progress.target) : json()},
          {"evaluations", {{"used", progress.evaluations.size()}, {"budget", limit ? json(*limit) : json()}}},
          {"elapsed_s", {{"used", progress.elapsed_s}, {"budget", seconds ? json(*seconds) : json()}}},
          {"budget", progress.budget},
          {"remeasures", progress.remeasures.size()},
          {"benches", progress.benches.size()},
          {"best", best_json(progress)},
          {"retained", summary.frontier.empty() ? json() : entry_json(summary.frontier.front())},
          {"frontier", summary.frontier.size()},
          {"last", last},
          {"notes", progress.notes},
          {"faults", faults_json(summary.ledger)}};
}

std::string status_text(const Summary& summary) {
  const RunProgress& progress = summary.progress;
  std::string text = fmt::format("run       {} ({})\ntask      {}\nstate     {}\n", summary.run.manifest.name, summary.run.root.string(),
                                 summary.run.manifest.task, state_line(summary));
  if (!progress.agent.empty()) text += fmt::format("agent     {}, seed {}\n", progress.agent, progress.seed);
  text += fmt::format("spent     {}\n", spent_text(progress));
  if (progress.target) text += fmt::format("target    {:.3g}x\n", *progress.target);
  if (const Recorded* best = progress.best())
    text += fmt::format("best      {} by {} ({}), row {}\n", ratio_text(*best->experiment.geomean, best->experiment.geomean_ci),
                        best->experiment.candidate, params_text(best->experiment.params), best->row);
  else
    text += "best      none yet\n";
  if (!summary.frontier.empty()) {
    const FrontierEntry& front = summary.frontier.front();
    text += fmt::format("retained  {} {}, receipt {}, row {}\n", front.name, ratio_text(front.geomean, front.geomean_ci),
                        front.receipt.substr(0, 12), front.row);
  } else {
    text += "retained  none\n";
  }
  const auto all = experiments_of(progress);
  if (!all.empty()) text += "last\n";
  for (std::size_t i = all.size() - std::min(all.size(), kLastRows); i < all.size(); ++i)
    text += fmt::format("  row {:<4} {:<9} {} ({}): {}\n", all[i].recorded->row, all[i].kind, all[i].recorded->experiment.candidate,
                        params_text(all[i].recorded->experiment.params), verdict_text(all[i].recorded->experiment));
  const std::vector<Said>& restored = progress.turns.restored;
  for (std::size_t i = restored.size() - std::min(restored.size(), kShownFaults); i < restored.size(); ++i)
    text += fmt::format("restored  {}: {} (row {})\n", restored[i].by, restored[i].text, restored[i].row);
  for (const std::string& note : progress.notes) text += fmt::format("note      {}\n", note);
  const std::vector<Error>& faults = summary.ledger.faults;
  for (std::size_t i = 0; i < std::min(faults.size(), kShownFaults); ++i) text += to_text(faults[i]) + "\n";
  if (faults.size() > kShownFaults) text += fmt::format("and {} more faults of the ledger (--json has them all)\n", faults.size() - kShownFaults);
  return text;
}

json report_json(const Summary& summary) {
  json out = status_json(summary);
  out["schema"] = "hone.report/1";
  out.erase("last");
  json experiments = json::array(), curve = json::array(), entries = json::array();
  double best = 0;
  for (const Experimented& each : experiments_of(summary.progress)) {
    experiments.push_back(experiment_json(each));
    const Experiment& experiment = each.recorded->experiment;
    if (std::string_view(each.kind) == "remeasure" || !experiment.scored || *experiment.geomean <= best) continue;
    best = *experiment.geomean;
    curve.push_back({{"row", each.recorded->row}, {"elapsed_s", each.recorded->elapsed_s}, {"geomean", best}});
  }
  for (const FrontierEntry& each : summary.frontier) entries.push_back(entry_json(each));
  out["experiments"] = std::move(experiments);
  out["best_so_far"] = std::move(curve);
  out["frontier"] = std::move(entries);
  return out;
}

std::string report_markdown(const Summary& summary) {
  const RunProgress& progress = summary.progress;
  const Manifest& manifest = summary.run.manifest;
  std::string text = fmt::format("# Run {}: {}\n\n", manifest.name, manifest.task);
  text += fmt::format("- State: {}\n- Spent: {}\n", state_line(summary), spent_text(progress));
  if (!progress.agent.empty())
    text += fmt::format("- Agent: {}, seed {} (row {})\n", progress.agent, progress.seed, progress.started ? progress.started->seq : 0);
  if (progress.target) text += fmt::format("- Target: {:.3g}x\n", *progress.target);
  text += fmt::format("- Task {}, judge {} ({})\n", manifest.task_sha256.substr(0, 12), manifest.judge_version, manifest.judge_sha256.substr(0, 12));

  text += "\n## Retained\n\n";
  if (summary.frontier.empty()) {
    text += "Nothing: no candidate was faster than what it had to beat in two full measurements, or none was added.\n";
  } else {
    text += "| name | geomean | family | parameters | device | receipt | row |\n|---|---|---|---|---|---|---|\n";
    for (const FrontierEntry& each : summary.frontier)
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", each.name, ratio_text(each.geomean, each.geomean_ci), cell(each.family),
                          cell(params_text(each.params)), cell(each.device), each.receipt, each.row);
    text += "\nSpeedup by workload:\n\n| workload |";
    std::map<std::string, std::map<std::string, double>> by_workload;
    for (const FrontierEntry& each : summary.frontier) {
      text += fmt::format(" {} |", each.name);
      for (const auto& [id, ratio] : each.ratios) by_workload[id][each.name] = ratio;
    }
    text += "\n|---|";
    for (std::size_t i = 0; i < summary.frontier.size(); ++i) text += "---|";
    text += "\n";
    for (const auto& [id, ratios] : by_workload) {
      text += fmt::format("| {} |", cell(id));
      for (const FrontierEntry& each : summary.frontier) {
        const auto found = ratios.find(each.name);
        text += found == ratios.end() ? " - |" : fmt::format(" {:.3f}x{} |", found->second, found->second < 1 ? " (slower)" : "");
      }
      text += "\n";
    }
  }

  text += "\n## Best so far\n\n";
  double best = 0;
  std::string curve;
  for (const Experimented& each : experiments_of(progress)) {
    const Experiment& experiment = each.recorded->experiment;
    if (std::string_view(each.kind) == "remeasure" || !experiment.scored || *experiment.geomean <= best) continue;
    best = *experiment.geomean;
    curve += fmt::format("| {} | {} | {} | {} | {} |\n", each.recorded->row, format_duration(each.recorded->elapsed_s),
                         ratio_text(best, experiment.geomean_ci), cell(experiment.candidate), cell(params_text(experiment.params)));
  }
  text += curve.empty() ? std::string("No experiment passed every workload yet.\n")
                        : "| row | after | geomean | candidate | parameters |\n|---|---|---|---|---|\n" + curve;

  text += "\n## Experiments\n\n";
  const auto all = experiments_of(progress);
  if (all.empty()) text += "None yet.\n";
  else text += "| row | kind | candidate | parameters | verdict | decision | receipt |\n|---|---|---|---|---|---|---|\n";
  for (const Experimented& each : all) {
    const Experiment& experiment = each.recorded->experiment;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", each.recorded->row, each.kind, cell(experiment.candidate),
                        cell(params_text(experiment.params)), cell(verdict_text(experiment)),
                        experiment.decision.empty() ? "-" : experiment.decision, experiment.receipt.empty() ? "-" : experiment.receipt);
  }
  if (!progress.notes.empty() || !summary.ledger.faults.empty()) {
    text += "\n## The record itself\n\n";
    for (const std::string& note : progress.notes) text += fmt::format("- {}\n", note);
    for (const Error& fault : summary.ledger.faults) text += fmt::format("- {}:{}: {}\n", fault.place.file, fault.place.line, fault.message);
  }
  return text;
}

}  // namespace hone
