// Turns of agents, as a run's ledger tells them.
#ifndef HONE_RUN_TURNS_H
#define HONE_RUN_TURNS_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/ledger.h"

namespace hone {

// What a program said that it used. None: unknown, and never taken for nought.
struct Spent {
  std::optional<std::int64_t> input_tokens, cached_tokens, output_tokens;
  std::optional<double> cost_usd;
  // All tokens that were reported; none when none were.
  std::optional<std::int64_t> tokens() const;
};
void to_json(nlohmann::json& out, const Spent& spent);
void from_json(const nlohmann::json& in, Spent& spent);

struct TurnRecord {
  int turn = 0, attempt = 1;             // a turn that was cut is taken again under its number
  std::string role, agent;               // agent: its short name
  std::int64_t started_row = 0, ended_row = 0;   // ended_row 0: it goes on, or the launcher was killed
  double started_s = 0, ended_s = 0;     // of the run's clock
  std::string end;                       // finished failed silent overtime flooded cancelled cut
  std::string cause;                     // why, by the launcher's own knowledge: "result", "budget: duration", ...
  std::string reason;                    // the driver's line for a person
  bool counted = false;                  // false: cut or cancelled, taken again by the same agent
  bool failed = false;
  Spent spent;
  int experiments = 0;                   // judgements in it
  bool improved = false;                 // a faster candidate was retained in it
  std::vector<std::int64_t> steers;      // rows it was given
};

struct Said {
  std::int64_t row = 0;
  std::string time, by, text;
};

struct Turns {
  std::vector<TurnRecord> all;
  std::vector<Said> steers, findings, restored;
  bool paused = false;
  std::int64_t since_row = 0;            // run_started of the first session after the last end

  int counted() const;
  bool open() const { return !all.empty() && all.back().ended_row == 0; }
  // Sums over turns, and how many turns did not say.
  std::int64_t tokens() const;
  double cost() const;
  int unknown_tokens() const;
  int unknown_cost() const;
  // Counted turns at the end that failed; in which nothing faster was retained; in which nothing was judged. They begin
  // anew when a run that had ended is resumed.
  int failed_in_a_row() const;
  int without_improvement() const;
  int without_experiment() const;
  std::vector<Said> waiting_steers() const;   // that no counted or open turn was given
};

Turns turns_of(const std::vector<LedgerRow>& rows);

}  // namespace hone

#endif
