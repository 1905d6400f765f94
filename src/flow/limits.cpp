#include "flow/limits.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace hone {

Result<Breakers> parse_breakers(std::string_view text) {
  Breakers breakers;
  if (text.empty()) return breakers;
  HONE_TRY(const auto pairs, parse_pairs(text, {"plateau", "no_progress", "failures"}));
  for (const auto& [key, value] : pairs) {
    int turns = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), turns);
    if (code != std::errc() || end != value.data() + value.size() || turns < 0 || turns > 1000000)
      return fail(make_error(ErrorKind::usage, "breaker {}={} is not a number of turns", key, value).with_hint("for example --breakers plateau=10,no_progress=0"));
    (key == "plateau" ? breakers.plateau : key == "no_progress" ? breakers.no_progress : breakers.failures) = turns;
  }
  return breakers;
}

int times_at_target(const RunProgress& progress, const std::string& sha256, double target) {
  int reached = 0;
  for (const auto* list : {&progress.evaluations, &progress.remeasures, &progress.benches})
    for (const Recorded& each : *list)
      if (each.full && each.experiment.sha256 == sha256 && each.experiment.geomean && *each.experiment.geomean >= target) ++reached;
  return reached;
}

bool target_met(const RunProgress& progress, const std::vector<FrontierEntry>& frontier, double target) {
  return std::any_of(frontier.begin(), frontier.end(), [&](const FrontierEntry& each) { return times_at_target(progress, each.sha256, target) >= 2; });
}

std::optional<std::string> spent_budget(const Budget& budget, const RunProgress& progress, double elapsed_s, const Spent& live) {
  const auto over = [&](const char* key, double used) {
    const auto limit = budget.limit(key);
    return limit && used >= *limit;
  };
  const auto live_tokens = static_cast<double>(live.tokens().value_or(0));
  if (over("evaluations", static_cast<double>(progress.evaluations.size()))) return "budget: evaluations";
  if (over("time", elapsed_s)) return "budget: duration";
  if (over("turns", progress.turns.counted())) return "budget: turns";
  if (over("tokens", static_cast<double>(progress.turns.tokens()) + live_tokens)) return "budget: tokens";
  if (over("cost", progress.turns.cost() + live.cost_usd.value_or(0))) return "budget: cost";
  return std::nullopt;
}

FlowEnd end_by(const std::string& cause) {
  if (cause == "target reached") return {cause, 0, "a retained candidate reached the target in two full measurements of the launcher"};
  if (cause == "space exhausted") return {cause, 0, "every tuner has tried every configuration"};
  if (cause == "cancelled") return {cause, 4, "stopped; what is finished is kept"};
  if (cause == "stopped") return {cause, 4, "stopped by `hone stop`; what is finished is kept"};
  if (cause.starts_with("budget: ")) {
    const std::string key = cause.substr(8);
    return {cause, 4, fmt::format("the budget of {} is spent; `--budget {}=` with `--resume` gives more", key, key)};
  }
  return {cause, 3, cause};
}

std::optional<FlowEnd> end_of(const RunProgress& progress, const std::vector<FrontierEntry>& frontier, const Budget& budget,
                              const std::optional<double>& target, const Breakers& breakers, double elapsed_s) {
  if (target && target_met(progress, frontier, *target)) return end_by("target reached");
  if (const auto spent = spent_budget(budget, progress, elapsed_s)) return end_by(*spent);
  const Turns& turns = progress.turns;
  const std::string again = "`hone run --resume` goes on, with another count";
  if (const int n = turns.failed_in_a_row(); breakers.failures > 0 && n >= breakers.failures)
    return FlowEnd{"repeated failure", 3,
                   fmt::format("{} turns in a row failed, the last one: {} (row {}); {}", n, turns.all.back().reason, turns.all.back().ended_row, again)};
  if (const int n = turns.without_experiment(); breakers.no_progress > 0 && n >= breakers.no_progress)
    return FlowEnd{"no progress", 4, fmt::format("{} turns in a row had nothing judged; {} (`--breakers no_progress=0` switches this off)", n, again)};
  if (const int n = turns.without_improvement(); breakers.plateau > 0 && n >= breakers.plateau)
    return FlowEnd{"plateau", 4, fmt::format("{} turns in a row retained nothing faster; {} (`--breakers plateau=0` switches this off)", n, again)};
  return std::nullopt;
}

NextTurn next_turn(const Turns& turns, const std::vector<std::string>& roles) {
  NextTurn next;
  next.turn = turns.counted() + 1;
  if (turns.all.empty()) return next;
  const TurnRecord& last = turns.all.back();
  const auto found = std::find(roles.begin(), roles.end(), last.role);
  next.agent = found == roles.end() ? 0 : static_cast<std::size_t>(found - roles.begin());
  if (last.counted) next.agent = found == roles.end() ? 0 : (next.agent + 1) % roles.size();
  else next.attempt = last.turn == next.turn ? last.attempt + 1 : 1;
  return next;
}

}  // namespace hone
