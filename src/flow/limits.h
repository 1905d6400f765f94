// When a run of agents ends, and whose turn is next: rules over what the ledger says, and nothing else.
#ifndef HONE_FLOW_LIMITS_H
#define HONE_FLOW_LIMITS_H

#include <optional>
#include <string>
#include <vector>

#include "run/frontier.h"
#include "run/progress.h"

namespace hone {

// Turns in a row after which a run is given up; 0: never.
struct Breakers {
  int plateau = 10;                      // in which nothing faster was retained
  int no_progress = 3;                   // in which nothing was judged
  int failures = 3;                      // that failed
};
// "plateau=10,no_progress=3,failures=3", 0 switches one off. Kind usage.
Result<Breakers> parse_breakers(std::string_view text);

struct FlowEnd {
  std::string reason;                    // "target reached", "budget: turns", "plateau", ...
  int exit = 0;
  std::string why;                       // one line for a person: what happened, and how to go on
};

// Whether the launcher itself measured a retained candidate at the target twice, in full.
bool target_met(const RunProgress& progress, const std::vector<FrontierEntry>& frontier, double target);
// Of one source: how often a full measurement reached the target.
int times_at_target(const RunProgress& progress, const std::string& sha256, double target);

// The budget that is spent, as "budget: KEY"; `live`: what the turn that goes on has reported so far.
std::optional<std::string> spent_budget(const Budget& budget, const RunProgress& progress, double elapsed_s, const Spent& live = {});
// Why no further turn begins; nullopt: one does.
std::optional<FlowEnd> end_of(const RunProgress& progress, const std::vector<FrontierEntry>& frontier, const Budget& budget,
                              const std::optional<double>& target, const Breakers& breakers, double elapsed_s);
FlowEnd end_by(const std::string& cause);   // of a turn's cause that ends the run: cancelled, stopped, a budget, the target

struct NextTurn {
  int turn = 1, attempt = 1;
  std::size_t agent = 0;                 // index
};
// Alternating among `roles`; a turn that was cut is taken again by the same agent.
NextTurn next_turn(const Turns& turns, const std::vector<std::string>& roles);

}  // namespace hone

#endif
