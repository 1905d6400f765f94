// How fast is it? Shuffled rounds of baseline, candidate and incumbent on fresh data; every timed
// output is checked off the clock.
#ifndef HONE_JUDGE_TIMING_H
#define HONE_JUDGE_TIMING_H

#include "judge/stopping.h"
#include "judge/workload.h"

namespace hone {

struct Timing {
  std::size_t baseline = 0;              // index of the one that counts: the fastest
  std::string baseline_text;             // what it says of itself
  std::vector<double> choice_s;          // medians of all baselines, when there were several to choose from
  std::vector<RawPair> raw;
  Series ratio, incumbent_ratio;         // of raw, as logarithms
  double warmup_s = 0;
  Series control;                        // baseline against baseline
  Stop stop = Stop::no;
  int oracle_samples = 0;                // timed outputs that also met the oracle
  std::optional<Refusal> refusal;        // of a timed output; the raw pairs before it are kept
  double extra_cpu_s = 0;                // candidate's work after it reported its end
  double statistics_s = 0;
  bool cancelled = false;
};

StoppingPolicy stopping_policy(const WorkloadJob& job);

// Result errors: contract (a baseline fails), and faults of the device.
Result<Timing> time_workload(const WorkloadJob& job, Session& session, Checker& checker);

}  // namespace hone

#endif
