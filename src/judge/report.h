// What a judgement says: `bench --json` (schema hone.bench/1), the text table, and the receipt.
#ifndef HONE_JUDGE_REPORT_H
#define HONE_JUDGE_REPORT_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace hone {

enum class Verdict { pass, fail, flaky, error };
std::string_view name_of(Verdict verdict);          // PASS FAIL FLAKY ERROR
enum class Decision { keep, reject, ambiguous };
std::string_view name_of(Decision decision);        // KEEP REJECT AMBIGUOUS

struct Interval {
  double low = 0, high = 0;
};

// One round of timing: seconds of each side, in the order they ran.
struct RawPair {
  double baseline = 0, candidate = 0;
  std::optional<double> incumbent;
  std::string order;                                // "bc", "cb", "bic", ...
  std::uint32_t call = 0;                           // Philox data set
  std::uint32_t epoch = 0;                          // from 0; loads of the programs, by two
};

struct WorkloadReport {
  std::string id;
  Verdict verdict = Verdict::error;
  std::optional<Error> error;
  std::string baseline;                             // which baseline counted
  std::string baseline_text;                        // what it says of itself: library, version, kernels
  std::optional<double> baseline_s, candidate_s;    // medians of the raw samples
  std::optional<double> ratio;                      // baseline time / candidate time; above 1 is faster
  std::optional<Interval> ratio_ci;                 // 95%
  std::optional<double> incumbent_ratio;            // incumbent time / candidate time
  std::optional<Interval> incumbent_ci;
  int samples = 0;
  double gate_value = 0, gate_limit = 0;            // worst seen
  double floor_s = 0;                               // physical floor
  double warmup_s = 0;                              // of load before the first sample
  std::optional<Interval> control_ci;               // A/A: the baseline against itself
  int control_samples = 0;
  std::vector<std::string> notes;
  std::vector<RawPair> raw;
};

struct Report {
  std::string task, candidate, device;
  int passed = 0, total = 0;
  int of_task = 0;                                  // workloads that the task has; a part has no geomean
  std::optional<double> geomean;                    // only when all pass
  std::optional<Interval> geomean_ci;
  std::optional<Decision> decision;                 // only when all pass
  std::optional<double> incumbent_geomean;
  std::optional<Interval> incumbent_geomean_ci;
  std::vector<std::string> notes;                   // "baseline deepgemm: not installed, ..."
  std::string receipt;                              // path, once written
  std::vector<WorkloadReport> workloads;
  nlohmann::json receipt_body;                      // see judge/receipt.h
  bool cancelled = false;

  int exit_code() const;                            // 0, 1 or 4
};

nlohmann::json to_json(const Report& report);       // hone.bench/1
nlohmann::json to_json(const WorkloadReport& workload);   // its part of that
// What `to_json` said, without raw samples and receipt. Kind contract when it is no hone.bench/1.
Result<Report> report_from_json(const nlohmann::json& json);
// One row a workload, errors below the table, "passed: 4/4", the geomean only if all pass, the
// decision, and last the receipt.
std::string to_text(const Report& report);

}  // namespace hone

#endif
