// From sources to programs that a device can load: plans for all workloads in one evaluation, their
// validation, one compile a distinct module, and each kernel's place in its shared object.
#ifndef HONE_JUDGE_PREPARE_H
#define HONE_JUDGE_PREPARE_H

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "contract/task.h"
#include "device/device.h"
#include "judge/judge.h"
#include "program/candidate.h"
#include "program/modules.h"

namespace hone {

struct Program {
  std::string name;
  std::variant<Executable, NativeBaseline> what;
  std::uint64_t workspace_bytes = 0;
  std::string description = {};               // of a baseline that cannot be asked: whose headers
};
Result<ProgramId> load(Session& session, const Program& program);

// Kind environment: the task is for another device or architecture.
Result<> runs_on(const Task& task, const DeviceInfo& device);

// A task's own code: a task.cpp in this process, or a task.cu compiled for the device, which loads it beside its data.
struct OracleCode {
  std::shared_ptr<TaskCode> here;
  fs::path on_device;
};
Result<OracleCode> load_code(const Task& task, Bench bench);

// A program for each of the workloads, and what a receipt says about it: compiler, command and hash
// of every binary, the plans.
struct Prepared {
  std::string name;                           // of the candidate or baseline
  std::vector<Result<Program>> programs;      // by workload; errors: plan, kernel_name, compile, ...
  nlohmann::json facts;
  std::map<ModuleKey, Artifact> modules;      // of a candidate: those that compiled
  double plan_s = 0, compile_s = 0;           // of the evaluation; of compilers and cache
};

// Nothing is compiled before every plan is validated. A Result error means that nothing can be run:
// the machine's fault, or all workloads fail for a reason that is the candidate's form (exit 2).
Result<Prepared> prepare(const Candidate& candidate, const std::vector<Workload>& workloads, Bench bench);
// A baseline that does not compile or plan is the task's fault: kind contract. Kind environment: what it needs is not there.
Result<Prepared> prepare(const Task& task, const BaselineSpec& baseline, const std::vector<Workload>& workloads,
                         Bench bench);
// Why a baseline is left out on this machine: "baseline deepgemm: not installed, `hone toolchain add deepgemm`".
std::optional<std::string> left_out(const BaselineSpec& baseline);

}  // namespace hone

#endif
