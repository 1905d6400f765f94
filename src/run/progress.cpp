#include "run/progress.h"

#include <nlohmann/json.hpp>

namespace hone {
namespace {

std::string text_of(const nlohmann::json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string start_key(const nlohmann::json& data) { return text_of(data, "purpose") + ":" + text_of(data, "sha256"); }

}  // namespace

const Recorded* RunProgress::best() const {
  const Recorded* best = nullptr;
  for (const auto* list : {&evaluations, &benches})
    for (const Recorded& each : *list)
      if (each.experiment.scored && (best == nullptr || *each.experiment.geomean > *best->experiment.geomean)) best = &each;
  return best;
}

RunProgress progress_of(const std::vector<LedgerRow>& rows) {
  RunProgress progress;
  for (const LedgerRow& row : rows) {
    // A bench between sessions carries the elapsed time of the run, so this never goes back.
    if (row.elapsed_s > progress.elapsed_s) progress.elapsed_s = row.elapsed_s;
    if (row.kind == "run_started") {
      progress.started = row;
      progress.ended.reset();
      progress.agent = text_of(row.data, "agent");
      progress.flow = row.data.contains("flow") ? text_of(row.data, "flow") : "tuner";
      if (row.data.contains("seed") && row.data["seed"].is_number_unsigned()) progress.seed = row.data["seed"].get<std::uint64_t>();
      if (row.data.contains("budget") && row.data["budget"].is_object()) progress.budget = row.data["budget"].get<Budget>();
      progress.target.reset();
      if (row.data.contains("target") && row.data["target"].is_number()) progress.target = row.data["target"].get<double>();
    } else if (row.kind == "run_ended") {
      progress.ended = row;
    } else if (row.kind == "evaluation_started") {
      ++progress.open_starts[start_key(row.data)];
    } else if (row.kind == "evaluation_cancelled") {
      if (const auto open = progress.open_starts.find(start_key(row.data)); open != progress.open_starts.end() && --open->second <= 0)
        progress.open_starts.erase(open);
    } else if (row.kind == "evaluation" || row.kind == "remeasure") {
      Recorded recorded{row.seq, row.time, text_of(row.data, "by"), 0, false, row.elapsed_s, row.data.get<Experiment>()};
      if (const auto turn = row.data.find("turn"); turn != row.data.end() && turn->is_number_integer()) recorded.turn = turn->get<int>();
      recorded.full = row.kind == "remeasure" || recorded.by == "bench" ||
                      (row.data.contains("full") && row.data["full"].is_boolean() && row.data["full"].get<bool>());
      progress.open_starts.erase((row.kind == "remeasure" ? "remeasure:" : "search:") + recorded.experiment.sha256);
      auto& list = row.kind == "remeasure" ? progress.remeasures : recorded.by == "bench" ? progress.benches : progress.evaluations;
      list.push_back(std::move(recorded));
    } else if (row.kind == "note") {
      progress.notes.push_back(text_of(row.data, "text"));
    }
  }
  progress.turns = turns_of(rows);
  return progress;
}

}  // namespace hone
