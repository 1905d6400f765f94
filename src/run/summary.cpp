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

std::string reason_of(const RunProgress& progress) {
  if (!progress.ended) return "";
  const auto reason = progress.ended->data.find("reason");
  return reason != progress.ended->data.end() && reason->is_string() ? reason->get<std::string>() : std::string();
}

json entry_json(const FrontierEntry& entry) {
  json out = entry;
  out["row"] = entry.row;
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

json faults_json(const LedgerText& ledger) {
  json faults = json::array();
  for (const Error& each : ledger.faults) faults.push_back(each);
  return faults;
}

}  // namespace

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

std::vector<Experimented> experiments_of(const RunProgress& progress) {
  std::vector<Experimented> all;
  for (const Recorded& each : progress.evaluations) all.push_back({&each, "search"});
  for (const Recorded& each : progress.remeasures) all.push_back({&each, "remeasure"});
  for (const Recorded& each : progress.benches) all.push_back({&each, "bench"});
  std::sort(all.begin(), all.end(), [](const Experimented& a, const Experimented& b) { return a.recorded->row < b.recorded->row; });
  return all;
}

std::vector<Improvement> best_so_far(const RunProgress& progress) {
  std::vector<Improvement> all;
  double best = 0;
  for (const Experimented& each : experiments_of(progress)) {
    const Experiment& experiment = each.recorded->experiment;
    if (std::string_view(each.kind) == "remeasure" || !experiment.scored || *experiment.geomean <= best) continue;
    best = *experiment.geomean;
    all.push_back({each.recorded, best});
  }
  return all;
}

json turn_json(const TurnRecord& turn) {
  return {{"row", turn.started_row},
          {"ended_row", turn.ended_row > 0 ? json(turn.ended_row) : json()},
          {"turn", turn.turn},
          {"attempt", turn.attempt},
          {"role", turn.role},
          {"agent", turn.agent},
          {"end", turn.end.empty() ? json() : json(turn.end)},
          {"cause", turn.cause.empty() ? json() : json(turn.cause)},
          {"reason", turn.reason},
          {"counted", turn.counted},
          {"failed", turn.failed},
          {"experiments", turn.experiments},
          {"improved", turn.improved},
          {"began_s", turn.started_s},
          {"ended_s", turn.ended_s},
          {"usage", turn.spent}};
}

std::string state_line(const Summary& summary) {
  std::string text = summary.state;
  if (const std::string reason = reason_of(summary.progress); summary.state == "ended" && !reason.empty())
    text += fmt::format(": {} (row {})", reason, summary.progress.ended->seq);
  return text;
}

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

json status_json(const Summary& summary, const json& live) {
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
  const Turns& turns = progress.turns;
  const auto limit_of = [&](const char* key) {
    const auto amount = progress.budget.limit(key);
    return amount ? json(*amount) : json();
  };
  json waiting = json::array(), restored = json::array();
  for (const Said& each : turns.waiting_steers()) waiting.push_back({{"row", each.row}, {"text", each.text}});
  for (const Said& each : turns.restored) restored.push_back({{"row", each.row}, {"path", each.by}, {"what", each.text}});
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
          {"turns", {{"used", turns.counted()}, {"budget", limit_of("turns")}}},
          {"tokens", {{"used", turns.tokens()}, {"unknown_turns", turns.unknown_tokens()}, {"budget", limit_of("tokens")}}},
          {"cost", {{"used", turns.cost()}, {"unknown_turns", turns.unknown_cost()}, {"budget", limit_of("cost")}}},
          {"budget", progress.budget},
          {"flow", progress.flow.empty() ? json() : json(progress.flow)},
          {"paused", turns.paused},
          {"turn", turns.open() ? turn_json(turns.all.back()) : json()},
          {"steers_waiting", waiting},
          {"restored", restored},
          {"live", live},
          {"remeasures", progress.remeasures.size()},
          {"benches", progress.benches.size()},
          {"best", best_json(progress)},
          {"retained", summary.frontier.empty() ? json() : entry_json(summary.frontier.front())},
          {"frontier", summary.frontier.size()},
          {"last", last},
          {"notes", progress.notes},
          {"faults", faults_json(summary.ledger)}};
}

std::string status_text(const Summary& summary, const json& live) {
  const RunProgress& progress = summary.progress;
  std::string text = fmt::format("run       {} ({})\ntask      {}\nstate     {}\n", summary.run.manifest.name, summary.run.root.string(),
                                 summary.run.manifest.task, state_line(summary));
  if (!progress.agent.empty())
    text += fmt::format("agent     {}{}, seed {}\n", progress.flow == "tuner" ? "" : progress.flow + " of ", progress.agent, progress.seed);
  if (progress.turns.open()) {
    const TurnRecord& turn = progress.turns.all.back();
    text += fmt::format("turn      {} of {}{}", turn.turn, turn.agent, turn.attempt > 1 ? fmt::format(", attempt {}", turn.attempt) : "");
    if (live.is_object())
      for (const json& each : live.value("agents", json::array()))
        if (each.value("role", "") == turn.role && each.contains("turn_s"))
          text += fmt::format(", {} since {}, silent for {}", each.value("state", ""), format_duration(each.value("turn_s", 0.0)), format_duration(each.value("silent_s", 0.0)));
    text += fmt::format(", row {}\n", turn.started_row);
  }
  if (progress.turns.paused) text += "paused    no further turn begins before `hone pause --off`\n";
  for (const Said& each : progress.turns.waiting_steers()) text += fmt::format("waiting   \"{}\" for the next turn (row {})\n", each.text.substr(0, 120), each.row);
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

}  // namespace hone
