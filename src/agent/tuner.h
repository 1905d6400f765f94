// The built-in agent: searches the parameter values of seed candidates, without any model.
//
// Every configuration is checked for correctness before it is timed (the judge's order), counts as
// one evaluation and is judged once; only the winner is measured again, in full against the
// incumbent, and must be better twice before it is named and retained. All state is in the ledger: a tuner that is killed
// and resumed replays it and goes on with the same configurations under the same budget.
#ifndef HONE_AGENT_TUNER_H
#define HONE_AGENT_TUNER_H

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/evaluator.h"
#include "agent/judging.h"
#include "run/frontier.h"
#include "run/ledger.h"
#include "run/progress.h"
#include "run/run.h"

namespace hone {

struct TunerOptions {
  std::vector<Candidate> seeds;
  std::string strategy = "ils";
  std::uint64_t seed = 0;
  Budget budget;
  std::optional<double> target;            // geomean over the baseline, measured twice, that ends the run
  const std::atomic<bool>* cancel = nullptr;
  std::string by = "tuner";                // in the rows; in a flow the role
  double confirm_share = 0.2;              // of a time budget: one full measurement
  int contenders = 3;                      // winners that are measured again before the search gives up
  int turn = 0;                            // of a flow, which ends the run itself; 0: this is the run
  std::function<void(const std::string&)> progress;   // "12/60 evaluations, 31 s, best 1.42x (MR=3 NR=4), last PASS 1.31x"
};

enum class RunEnd { space_exhausted, target_reached, budget_evaluations, budget_time, cancelled };
std::string_view name_of(RunEnd end);      // "space exhausted", "target reached", "budget evaluations", ...
int exit_code_of(RunEnd end);              // 0, 0, 4, 4, 4

struct TunerOutcome {
  RunEnd end = RunEnd::space_exhausted;
  std::optional<FrontierEntry> retained;   // added by this session
  std::string note;                        // why the fastest of the search was not retained, if it was not
};

// Errors: contract (space), io (ledger, disk), and faults of the machine that no candidate explains
// (environment, sandbox, device); the ledger then says that the run was broken off.
Result<TunerOutcome> tune(const Run& run, Ledger& ledger, const TunerOptions& options, Evaluator& evaluator);

// Every candidate in the run's scratch folder that has parameters, by name.
Result<std::vector<Candidate>> seed_candidates(const Run& run);

}  // namespace hone

#endif
