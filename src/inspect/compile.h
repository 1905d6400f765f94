// What a candidate compiles to, without running it: plans and modules for every workload, and what each kernel takes.
#ifndef HONE_INSPECT_COMPILE_H
#define HONE_INSPECT_COMPILE_H

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "judge/prepare.h"

namespace hone {

// What to compile for: `wanted`, else the architecture of `here` (may be null) where the task knows it, else the task's first.
std::string target_architecture(const Task& task, const std::string& wanted, const Device* here);
// A device of that architecture whose limits count; only the CPU's can also run something. Kind not_found.
Result<std::unique_ptr<Device>> open_target(const std::string& architecture, const Sandbox& sandbox, const fs::path& libexec,
                                            CpuDeviceOptions options);

// A candidate prepared for the named workloads (none named: all).
struct Compiled {
  std::vector<Workload> workloads;
  Prepared prepared;                   // programs by workload
  // Ids of the workloads that launch this kernel (mangled) of this module.
  std::vector<std::string> launched_by(const ModuleKey& module, const std::string& symbol) const;
};
// Errors: as prepare (judge/prepare.h); not_found for an unknown workload.
Result<Compiled> compile_for(const Task& task, const Candidate& candidate, const std::vector<std::string>& workloads, Bench bench);

// Schema hone.compile/1: task, candidate, sha256, architecture, failed, workloads [{id, error}], plans by workload,
// modules [{source, defines, sha256, compiler, command, cached; of CUDA: resources by kernel, warnings}].
nlohmann::json compile_report(const Task& task, const Candidate& candidate, const Compiled& compiled, Bench bench);
// A row a kernel, the warnings, what was compiled. The errors of a report are told apart.
std::string compile_text(const nlohmann::json& report);

// "kernel.cu BM=128 BN=64".
std::string module_name(const nlohmann::json& module);
// Each distinct error of `workloads` with the ids that it stands for.
std::vector<std::pair<Error, std::vector<std::string>>> compile_errors(const nlohmann::json& report);

}  // namespace hone

#endif
