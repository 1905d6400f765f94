// Judging one workload: what it needs, and what comes out. docs/judge.md has every rule's reason.
#ifndef HONE_JUDGE_WORKLOAD_H
#define HONE_JUDGE_WORKLOAD_H

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "judge/checker.h"
#include "judge/judge.h"
#include "judge/prepare.h"
#include "judge/statistics.h"

namespace hone {

struct WorkloadJob {
  const Task& task;
  const Workload& workload;
  const OracleCode& code;
  Device& device;
  std::vector<const Program*> baselines = {};  // at least one
  const Program* candidate = nullptr;          // null: the baseline that counts, against itself
  const Program* incumbent = nullptr;          // null: the baseline decides
  std::uint64_t seed = 0;                      // of this workload; secret until the receipt
  double timing_s = 0;                         // budget of the timing, warm-up included
  bool hard_budget = false;                    // it also ends a fixed number of samples
  std::optional<int> samples = {};
  std::optional<std::uint64_t> memory_bytes = {};   // JudgeRequest::memory_bytes
  bool quick = false;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<double()> clock = now_s;       // seconds; tests give the fake device's

  bool cancelled() const { return cancel != nullptr && cancel->load(); }
};

// Independent seeds from one: for each purpose and number.
std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t number = 0);

struct WorkloadOutcome {
  WorkloadReport report;
  std::optional<Estimate> ratio;               // baseline / candidate; none below the least samples
  std::optional<Estimate> incumbent_ratio;
  nlohmann::json facts;                        // for the receipt: seeds, baselines, seconds by step
  double statistics_s = 0;
  double timing_s = 0;                         // that the timing took
};

// A measurement that a neighbour on the device or a thermal slowdown disturbed is repeated once, quick ones are not; the
// second counts, and the receipt's `disturbed` has what the first one saw.
// Never throws what was measured away: a fault of the device becomes the workload's ERROR. A Result
// error (kind contract) says that the task itself is unsound.
Result<WorkloadOutcome> judge_workload(const WorkloadJob& job);

}  // namespace hone

#endif
