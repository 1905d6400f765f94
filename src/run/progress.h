// What a ledger says a run has reached: everything that status, report and a resumed run need.
#ifndef HONE_RUN_PROGRESS_H
#define HONE_RUN_PROGRESS_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/budget.h"
#include "run/experiment.h"
#include "run/ledger.h"
#include "run/turns.h"

namespace hone {

struct Recorded {
  std::int64_t row = 0;                          // the ledger row that says so
  std::string time, by;                          // tuner, bench, or an agent's role
  int turn = 0;                                  // 0: of none
  bool full = false;                             // no quick look: it may retain and reach a target
  double elapsed_s = 0;
  Experiment experiment;
};

struct RunProgress {
  std::optional<LedgerRow> started;              // the newest run_started
  std::optional<LedgerRow> ended;                // the run_ended after it, when there is one
  std::string agent;                             // "tuner:ils"; of several agents "first_chaser=tuner:ils, second_chaser=..."
  std::string flow;                              // tuner, goal, flame-chase
  std::uint64_t seed = 0;
  Budget budget;
  std::optional<double> target;
  double elapsed_s = 0;                          // cumulative
  std::vector<Recorded> evaluations;             // that the budget counts
  std::vector<Recorded> remeasures;              // deliberate, marked, not counted
  std::vector<Recorded> benches;                 // by `hone bench` in the run
  std::map<std::string, int> open_starts;        // purpose:sha256 -> starts without a result: interrupted tries
  std::vector<std::string> notes;
  Turns turns;

  // The fastest that passed, of evaluations and benches, first of equals; null while there is none.
  const Recorded* best() const;
};

RunProgress progress_of(const std::vector<LedgerRow>& rows);

}  // namespace hone

#endif
