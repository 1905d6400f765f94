#include "flow/live.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace hone {

using nlohmann::json;

Spent spent_of(const Usage& usage) { return {usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.cost_usd}; }

void Live::begin(int turn, int attempt, const std::string& role) {
  const std::lock_guard held(mutex_);
  in_turn_ = true;
  turn_ = turn;
  attempt_ = attempt;
  role_ = role;
  began_s_ = last_s_ = now_s();
  usage_ = {};
  last_ = nullptr;
}

void Live::event(const AgentEvent& event) {
  const std::lock_guard held(mutex_);
  last_s_ = now_s();
  if (event.kind == EventKind::usage) usage_ = event.usage;
  last_ = {{"kind", name_of(event.kind)}, {"text", event.text.substr(0, 200)}};
  if (!event.tool.empty()) last_["tool"] = event.tool;
}

void Live::end() {
  const std::lock_guard held(mutex_);
  in_turn_ = false;
}

Spent Live::spent() const {
  const std::lock_guard held(mutex_);
  return in_turn_ ? spent_of(usage_) : Spent{};
}

json Live::snapshot(double elapsed_s, int queue) const {
  const std::lock_guard held(mutex_);
  const double now = now_s();
  json agents = json::array();
  for (const auto& [role, name] : agents_) {
    const bool acting = in_turn_ && role == role_;
    json each = {{"role", role}, {"agent", name}, {"state", acting ? (queue > 0 ? "measuring" : "working") : "waiting"}};
    if (acting) {
      each["turn_s"] = now - began_s_;
      each["silent_s"] = now - last_s_;
      each["last"] = last_;
    }
    agents.push_back(std::move(each));
  }
  return {{"schema", "hone.live/1"},
          {"time", utc_timestamp()},
          {"pid", ::getpid()},
          {"elapsed_s", elapsed_s},
          {"state", in_turn_ ? "in a turn" : paused_ ? "paused" : "between turns"},
          {"queue", queue},
          {"turn", turn_},
          {"attempt", attempt_},
          {"role", role_},
          {"usage", spent_of(usage_)},
          {"agents", std::move(agents)}};
}

fs::path live_file(const Run& run) { return run.root / "live.json"; }

std::optional<LeftLive> left_live(const Run& run, double ledger_elapsed_s) {
  const auto text = read_file(live_file(run), std::size_t{1} << 20);
  if (!text) return std::nullopt;
  const json value = json::parse(*text, nullptr, false);
  if (!value.is_object() || !value.contains("elapsed_s") || !value["elapsed_s"].is_number() || !value.contains("turn") || !value["turn"].is_number_integer() ||
      !value.contains("attempt") || !value["attempt"].is_number_integer())
    return std::nullopt;
  struct stat live = {}, ledger = {};
  if (::stat(live_file(run).c_str(), &live) != 0 || ::stat(run.ledger().c_str(), &ledger) != 0) return std::nullopt;
  LeftLive left;
  left.turn = value["turn"].get<int>();
  left.attempt = value["attempt"].get<int>();
  left.elapsed_s = value["elapsed_s"].get<double>();
  if (value.contains("usage")) left.spent = value["usage"].get<Spent>();
  const double since = std::max(0.0, static_cast<double>(live.st_mtim.tv_sec - ledger.st_mtim.tv_sec)) + 2;
  if (!(left.elapsed_s <= ledger_elapsed_s + since)) return std::nullopt;
  return left;
}

}  // namespace hone
