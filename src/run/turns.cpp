#include "run/turns.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hone {
namespace {

using nlohmann::json;

std::string text_of(const json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

template <class T>
std::optional<T> number_of(const json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_number() ? std::optional<T>(found->get<T>()) : std::nullopt;
}

bool flag_of(const json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_boolean() && found->get<bool>();
}

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

// How many turns at the end, of those that count, answer to `holds`.
template <class Holds>
int run_length(const Turns& turns, Holds holds) {
  int length = 0;
  for (auto each = turns.all.rbegin(); each != turns.all.rend() && each->started_row > turns.since_row; ++each) {
    if (!each->counted) continue;
    if (!holds(*each)) break;
    ++length;
  }
  return length;
}

}  // namespace

std::optional<std::int64_t> Spent::tokens() const {
  if (!input_tokens && !output_tokens) return std::nullopt;
  return input_tokens.value_or(0) + output_tokens.value_or(0);
}

void to_json(json& out, const Spent& spent) {
  out = {{"input_tokens", or_null(spent.input_tokens)},
         {"cached_tokens", or_null(spent.cached_tokens)},
         {"output_tokens", or_null(spent.output_tokens)},
         {"cost_usd", or_null(spent.cost_usd)}};
}

void from_json(const json& in, Spent& spent) {
  spent = {};
  if (!in.is_object()) return;
  spent.input_tokens = number_of<std::int64_t>(in, "input_tokens");
  spent.cached_tokens = number_of<std::int64_t>(in, "cached_tokens");
  spent.output_tokens = number_of<std::int64_t>(in, "output_tokens");
  spent.cost_usd = number_of<double>(in, "cost_usd");
}

int Turns::counted() const {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const TurnRecord& each) { return each.counted; }));
}

std::int64_t Turns::tokens() const {
  std::int64_t sum = 0;
  for (const TurnRecord& each : all) sum += each.spent.tokens().value_or(0);
  return sum;
}

double Turns::cost() const {
  double sum = 0;
  for (const TurnRecord& each : all) sum += each.spent.cost_usd.value_or(0);
  return sum;
}

int Turns::unknown_tokens() const {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const TurnRecord& each) { return each.ended_row != 0 && !each.spent.tokens(); }));
}

int Turns::unknown_cost() const {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const TurnRecord& each) { return each.ended_row != 0 && !each.spent.cost_usd; }));
}

int Turns::failed_in_a_row() const {
  return run_length(*this, [](const TurnRecord& each) { return each.failed; });
}

int Turns::without_improvement() const {
  return run_length(*this, [](const TurnRecord& each) { return !each.improved; });
}

int Turns::without_experiment() const {
  return run_length(*this, [](const TurnRecord& each) { return each.experiments == 0; });
}

std::vector<Said> Turns::waiting_steers() const {
  std::set<std::int64_t> given;
  for (const TurnRecord& each : all)
    if (each.counted || each.ended_row == 0) given.insert(each.steers.begin(), each.steers.end());
  std::vector<Said> waiting;
  for (const Said& each : steers)
    if (given.count(each.row) == 0) waiting.push_back(each);
  return waiting;
}

Turns turns_of(const std::vector<LedgerRow>& rows) {
  Turns turns;
  double best = 0;
  bool ended = true;
  const auto current = [&]() -> TurnRecord* { return turns.open() ? &turns.all.back() : nullptr; };
  for (const LedgerRow& row : rows) {
    const json& data = row.data;
    if (row.kind == "turn_started") {
      TurnRecord turn;
      turn.turn = number_of<int>(data, "turn").value_or(0);
      turn.attempt = number_of<int>(data, "attempt").value_or(1);
      turn.role = text_of(data, "role");
      turn.agent = text_of(data, "agent");
      turn.started_row = row.seq;
      turn.started_s = turn.ended_s = row.elapsed_s;
      if (const auto given = data.find("steers"); given != data.end() && given->is_array())
        for (const json& each : *given)
          if (each.is_number_integer()) turn.steers.push_back(each.get<std::int64_t>());
      turns.all.push_back(std::move(turn));
    } else if (row.kind == "turn_ended") {
      TurnRecord* turn = current();
      if (turn == nullptr) continue;
      turn->ended_row = row.seq;
      turn->ended_s = row.elapsed_s;
      turn->end = text_of(data, "end");
      turn->cause = text_of(data, "cause");
      turn->reason = text_of(data, "reason");
      turn->counted = flag_of(data, "counted");
      turn->failed = flag_of(data, "failed");
      if (const auto usage = data.find("usage"); usage != data.end()) turn->spent = usage->get<Spent>();
    } else if (row.kind == "evaluation" || row.kind == "remeasure") {
      if (TurnRecord* turn = current(); turn != nullptr && text_of(data, "by") != "bench") ++turn->experiments;
    } else if (row.kind == "frontier_add") {
      const double geomean = number_of<double>(data, "geomean").value_or(0);
      if (geomean <= best) continue;
      best = geomean;
      if (TurnRecord* turn = current()) turn->improved = true;
    } else if (row.kind == "steer") {
      turns.steers.push_back({row.seq, row.time, text_of(data, "by"), text_of(data, "text")});
    } else if (row.kind == "finding") {
      turns.findings.push_back({row.seq, row.time, text_of(data, "by"), text_of(data, "text")});
    } else if (row.kind == "record_restored") {
      turns.restored.push_back({row.seq, row.time, text_of(data, "path"), text_of(data, "what")});
    } else if (row.kind == "paused") {
      turns.paused = true;
    } else if (row.kind == "unpaused") {
      turns.paused = false;
    } else if (row.kind == "run_started") {
      turns.paused = false;
      if (std::exchange(ended, false)) turns.since_row = row.seq;
    } else if (row.kind == "run_ended") {
      turns.paused = false;
      ended = true;
    }
  }
  return turns;
}

}  // namespace hone
