// What a run has reached, for people and programs: `hone status` and the end of `hone run`; `hone report` is in
// run/report.h. Derived from the ledger alone; every statement names its row.
#ifndef HONE_RUN_SUMMARY_H
#define HONE_RUN_SUMMARY_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/frontier.h"
#include "run/ledger.h"
#include "run/progress.h"
#include "run/run.h"

namespace hone {

struct Summary {
  Run run;
  LedgerText ledger;
  RunProgress progress;
  std::vector<FrontierEntry> frontier;
  std::string state;                 // new, running, interrupted, ended
};

// Reads the ledger; `running` comes from the run's lock.
Result<Summary> summarize(const Run& run);

// `live`: what a launcher that works says of itself (hone.live/1, flow/live.h), else null.
nlohmann::json status_json(const Summary& summary, const nlohmann::json& live = nullptr);     // hone.status/1
std::string status_text(const Summary& summary, const nlohmann::json& live = nullptr);

// Pieces that reports and the monitor share.
struct Experimented {
  const Recorded* recorded;
  const char* kind;                  // search, remeasure, bench
};
std::vector<Experimented> experiments_of(const RunProgress& progress);   // in the ledger's order
struct Improvement {
  const Recorded* recorded;          // faster than all before it, remeasures not counted
  double geomean;
};
std::vector<Improvement> best_so_far(const RunProgress& progress);
std::string ratio_text(double ratio, const std::optional<Interval>& interval);   // "1.310x [1.290, 1.330]"
std::string verdict_text(const Experiment& experiment);      // "PASS 1.310x", "3/4 passed, wrong_result: row 3 differs"
std::string state_line(const Summary& summary);              // "ended: target reached (row 12)"
nlohmann::json turn_json(const TurnRecord& turn);

// "evaluations 10/15, 31 s/120 s, cost 0/1".
std::string spent_text(const RunProgress& progress);

}  // namespace hone

#endif
