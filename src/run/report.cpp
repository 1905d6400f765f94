#include "run/report.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace hone {
namespace {

using nlohmann::json;

json experiment_json(const Experimented& each) {
  json out = each.recorded->experiment;
  out["row"] = each.recorded->row;
  out["time"] = each.recorded->time;
  out["elapsed_s"] = each.recorded->elapsed_s;
  out["kind"] = each.kind;
  out["by"] = each.recorded->by;
  return out;
}

json entry_json(const FrontierEntry& entry) {
  json out = entry;
  out["row"] = entry.row;
  return out;
}

json said_json(const std::vector<Said>& list) {
  json out = json::array();
  for (const Said& each : list) out.push_back({{"row", each.row}, {"time", each.time}, {"by", each.by}, {"text", each.text}});
  return out;
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

std::string role_text(const TurnRecord& turn) { return turn.role == "agent" ? turn.agent : turn.role + ", " + turn.agent; }

std::string end_text(const TurnRecord& turn) {
  if (turn.ended_row == 0) return "not ended";
  std::string text = turn.cause == "result" ? std::string("by itself") : turn.cause;
  if (!turn.reason.empty()) text += ": " + turn.reason.substr(0, 160);
  return text;
}

std::string tokens_text(const TurnRecord& turn) {
  const auto tokens = turn.spent.tokens();
  return tokens ? std::to_string(*tokens) : "unknown";
}

std::string cost_text(const TurnRecord& turn) { return turn.spent.cost_usd ? fmt::format("{:.4g}", *turn.spent.cost_usd) : "unknown"; }

}  // namespace

json report_json(const Summary& summary) {
  json out = status_json(summary);
  out["schema"] = "hone.report/1";
  out.erase("last");
  json experiments = json::array(), curve = json::array(), entries = json::array();
  for (const Experimented& each : experiments_of(summary.progress)) experiments.push_back(experiment_json(each));
  for (const Improvement& each : best_so_far(summary.progress))
    curve.push_back({{"row", each.recorded->row}, {"elapsed_s", each.recorded->elapsed_s}, {"geomean", each.geomean}});
  json turns = json::array();
  for (const TurnRecord& each : summary.progress.turns.all) turns.push_back(turn_json(each));
  for (const FrontierEntry& each : summary.frontier) entries.push_back(entry_json(each));
  out["experiments"] = std::move(experiments);
  out["best_so_far"] = std::move(curve);
  out["turns"] = std::move(turns);
  out["findings"] = said_json(summary.progress.turns.findings);
  out["steers"] = said_json(summary.progress.turns.steers);
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
  std::string curve;
  for (const Improvement& each : best_so_far(progress)) {
    const Experiment& experiment = each.recorded->experiment;
    curve += fmt::format("| {} | {} | {} | {} | {} |\n", each.recorded->row, format_duration(each.recorded->elapsed_s),
                         ratio_text(each.geomean, experiment.geomean_ci), cell(experiment.candidate), cell(params_text(experiment.params)));
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
  const Turns& turns = progress.turns;
  if (!turns.all.empty()) {
    text += "\n## Turns\n\n| turn | agent | how it ended | experiments | tokens | cost | rows |\n|---|---|---|---|---|---|---|\n";
    for (const TurnRecord& each : turns.all)
      text += fmt::format("| {}{} | {} | {} | {}{} | {} | {} | {}-{} |\n", each.turn, each.attempt > 1 ? fmt::format(" ({})", each.attempt) : "", cell(role_text(each)), cell(end_text(each)),
                          each.experiments, each.improved ? ", faster one retained" : "", tokens_text(each), cost_text(each), each.started_row, each.ended_row > 0 ? std::to_string(each.ended_row) : "");
  }
  for (const auto& [title, list] : {std::pair("Findings", &turns.findings), std::pair("What a person said", &turns.steers)}) {
    if (list->empty()) continue;
    text += fmt::format("\n## {}\n\n", title);
    for (const Said& each : *list) text += fmt::format("- {} ({}, row {})\n", cell(each.text), cell(each.by), each.row);
  }
  if (!progress.notes.empty() || !summary.ledger.faults.empty() || !turns.restored.empty()) {
    text += "\n## The record itself\n\n";
    for (const Said& each : turns.restored) text += fmt::format("- {}: {}; it was put back (row {})\n", cell(each.by), cell(each.text), each.row);
    for (const std::string& note : progress.notes) text += fmt::format("- {}\n", note);
    for (const Error& fault : summary.ledger.faults) text += fmt::format("- {}:{}: {}\n", fault.place.file, fault.place.line, fault.message);
  }
  return text;
}

}  // namespace hone
