// How the tuner and the flows have a candidate judged. The real one asks the judge; tests bring their own.
#ifndef HONE_AGENT_EVALUATOR_H
#define HONE_AGENT_EVALUATOR_H

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "client/service_client.h"
#include "judge/judge.h"

namespace hone {

struct Evaluation {
  const Candidate& candidate;
  bool quick = true;                       // false: a full measurement that may decide KEEP
  std::optional<Candidate> incumbent;      // full: what must be beaten; none: the baseline
  std::optional<double> time_budget_s;
  std::vector<std::string> workloads = {};  // empty: all
  std::optional<int> samples = {};         // exactly this many pairs a workload
  bool baseline = false;                   // the baseline itself; `candidate` is not looked at
  const std::atomic<bool>* cancel = nullptr;   // instead of the evaluator's own
  Progress progress = {};
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // An error when the candidate could not be judged at all; its kind says whose fault it is.
  virtual Result<Report> evaluate(const Evaluation& evaluation) = 0;
  // Compiles candidates that are likely to be judged next, before any of them is measured: nothing
  // else runs while the clock does. Faults show when the candidate is judged.
  virtual void prepare(const std::vector<Candidate>& upcoming) = 0;
};

// `cancel` may be null. References must outlive the evaluator.
std::unique_ptr<Evaluator> make_judge_evaluator(const Task& task, Bench bench, const std::atomic<bool>* cancel);
// The same on an evaluation service, which compiles for itself.
std::unique_ptr<Evaluator> make_remote_evaluator(const Task& task, client::ServiceClient& service, const std::atomic<bool>* cancel);

}  // namespace hone

#endif
