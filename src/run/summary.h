// What a run has reached, for people and programs: `hone status`, `hone report` and the end of
// `hone run`. Derived from the ledger alone; every statement names its row.
#ifndef HONE_RUN_SUMMARY_H
#define HONE_RUN_SUMMARY_H

#include <nlohmann/json_fwd.hpp>
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

nlohmann::json status_json(const Summary& summary);     // hone.status/1
std::string status_text(const Summary& summary);
nlohmann::json report_json(const Summary& summary);     // hone.report/1
std::string report_markdown(const Summary& summary);

// "evaluations 10/15, 31 s/120 s, cost 0/1".
std::string spent_text(const RunProgress& progress);

}  // namespace hone

#endif
