// One judgement with its rows in the ledger: a start, then a result or a cancellation.
#ifndef HONE_AGENT_JUDGING_H
#define HONE_AGENT_JUDGING_H

#include <functional>
#include <optional>
#include <string>

#include "agent/evaluator.h"
#include "run/experiment.h"
#include "run/ledger.h"
#include "run/run.h"

namespace hone {

// An interrupted candidate is tried this often in all before it is recorded as an error.
constexpr int kMaxAttempts = 3;

// Whether an error is the candidate's own, so that the run goes on with the next.
bool of_the_candidate(ErrorKind kind);

struct Judging {
  const Run& run;
  Ledger& ledger;
  Evaluator& evaluator;
  std::function<double()> elapsed_s;       // of the run
  const std::atomic<bool>* cancel = nullptr;
  int total = 0;                           // workloads, for a row of what could not be judged
  bool strict = false;                     // a fault of the machine in one workload makes the judgement one, not the candidate
};

struct Judged {
  Experiment experiment;
  std::optional<Report> report;            // none: it could not be judged at all
  std::int64_t row = 0;
};

// `remeasure`: a deliberate second look. `tries`: earlier starts that never ended. `complete` adds lineage, and who asked, to
// the row; its error keeps the row from being written. nullopt: cancelled, which counts as no try. An error: a fault of
// the machine that no candidate explains, or of the disk.
Result<std::optional<Judged>> judge_once(const Judging& where, const Evaluation& evaluation, bool remeasure, int tries,
                                         const std::function<Result<>(Experiment& experiment, nlohmann::json& extra)>& complete);

}  // namespace hone

#endif
