// The judge: contract, compile, correctness, timing, verdict, receipt, in the order of
// docs/judge.md. A measurement depends on nothing that ran before it.
#ifndef HONE_JUDGE_JUDGE_H
#define HONE_JUDGE_JUDGE_H

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/task.h"
#include "device/device.h"
#include "judge/report.h"
#include "program/candidate.h"
#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"

namespace hone {

// One line of progress: "rmsnorm: workload 2/4: timing 40 pairs, 1.23x".
using Progress = std::function<void(const std::string& line)>;

struct JudgeRequest {
  std::optional<Candidate> candidate;        // none: the baseline itself
  std::optional<Candidate> incumbent;        // decides KEEP/REJECT; none: the baseline
  std::vector<std::string> workloads;        // ids; empty: all
  std::optional<std::uint64_t> seed;         // none: secret
  std::optional<double> time_budget_s;       // of all timing; shared out over the workloads. Correctness comes on top
  std::optional<int> samples;                // exactly this many pairs a workload, instead of the stopping rule
  std::optional<std::uint64_t> memory_bytes; // limit on a workload's buffers plus the program's own memory
  std::map<std::string, std::string> baselines;   // by workload id: the one that counts; others: the faster
  bool quick = false;                        // tuner: fewer seeds, wider interval; never a KEEP on its own
  const std::atomic<bool>* cancel = nullptr;
  Progress progress;
  std::function<void(const WorkloadReport&)> judged;   // each workload as soon as its verdict is there
};

// The rooms a judge works with.
struct Bench {
  const Sandbox& sandbox;
  const Toolchain& toolchain;
  Device& device;
};

// Plans and compiles everything that judging would, so that it is in the cache. Errors as judge gives them. False: the
// candidate compiles for no workload; judging it uses no device.
Result<bool> compile_all(const Task& task, const JudgeRequest& request, Bench bench);

// An error (exit 2 or 3) when nothing could be judged; everything else is in the report: what
// finished before a cancel, timeout or crash is kept.
Result<Report> judge(const Task& task, const JudgeRequest& request, Bench bench);

}  // namespace hone

#endif
