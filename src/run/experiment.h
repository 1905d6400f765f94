// One experiment of a run as the ledger keeps it: where a candidate came from and what was judged.
#ifndef HONE_RUN_EXPERIMENT_H
#define HONE_RUN_EXPERIMENT_H

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "judge/report.h"
#include "program/candidate.h"
#include "program/problem.h"

namespace hone {

struct WorkloadResult {
  std::string verdict;                        // PASS FAIL FLAKY ERROR
  std::optional<double> ratio, baseline_s, candidate_s;
  std::optional<Interval> ratio_ci;
  std::optional<Error> error;
};

struct Experiment {
  std::string candidate, sha256;              // folder name; sources, settings and values
  Parameters params;
  std::string parent, idea, family;
  bool scored = false;                        // every workload passed: geomean exists
  int passed = 0, total = 0;
  std::map<std::string, WorkloadResult> workloads;
  std::optional<double> geomean;
  std::optional<Interval> geomean_ci;
  std::string decision;                       // KEEP REJECT AMBIGUOUS, or empty
  std::string receipt;                        // id, or empty
  std::string device;
  std::optional<Error> error;                 // the first, when not scored
  int attempts = 1;
  double seconds = 0;                         // wall time of the judging
};

void to_json(nlohmann::json& out, const Experiment& experiment);
void from_json(const nlohmann::json& in, Experiment& experiment);

// What a report says of a candidate. Lineage is left to the caller.
Experiment experiment_of(const Report& report, const Candidate& candidate);
// A candidate that could not be judged at all.
Experiment failed_experiment(const Error& error, const Candidate& candidate, int total);

// "MR=3 NR=4", or "-".
std::string params_text(const Parameters& params);

}  // namespace hone

#endif
