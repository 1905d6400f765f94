// A candidate: its sources as read once, its settings and its tunable parameters.
#ifndef HONE_PROGRAM_CANDIDATE_H
#define HONE_PROGRAM_CANDIDATE_H

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "program/plan.h"
#include "program/problem.h"
#include "toolchain/toolchain.h"

namespace hone {

struct TunableParameter {
  std::string name;
  std::vector<std::string> values;   // in the order written
};

// Schema share/schema/candidate.json.
struct Candidate {
  std::string name;                  // folder name
  fs::path path;
  SourceTree sources;                // every file but NOTES.md and candidate.yaml
  std::string sha256;                // of sources, settings and parameter values: what identifies an experiment
  std::string language = "cpp", compiler = "g++";   // or cuda and nvcc
  std::vector<std::string> flags;
  std::vector<TunableParameter> parameters;
  std::vector<std::string> constraints;      // expressions over parameters
  Parameters values;                         // the frozen configuration; defaults filled in
  std::string notes;                         // NOTES.md
  bool trusted = false;                      // a task's own program: may have further headers, and a kernel that takes an
  std::vector<fs::path> includes;            // input as a pointer to non-const, as other projects' kernels do

  bool is_cuda() const { return language == "cuda"; }
  // The same candidate with other parameter values (each must be listed). Recomputes sha256.
  Result<Candidate> with(const Parameters& changed) const;
};

// Errors: not_found (with the nearest sibling's name), contract (located in candidate.yaml), io.
Result<Candidate> load_candidate(const fs::path& folder);
// The same from a folder's files; `folder` is what errors call it.
Result<Candidate> candidate_from_files(const std::string& name, SourceTree files, const fs::path& folder);
// Files that say this very configuration and nothing else: read back, the sha256 is the same.
SourceTree frozen_files(const Candidate& candidate);

// A plan for each problem, evaluated in one sandboxed process. An element's error (kind plan) is
// what that evaluation threw or why it ended: exception text, crash, time, memory, output.
class Toolchain;
Result<std::vector<Result<Plan>>> evaluate_plans(const Candidate& candidate, const std::vector<ProblemShape>& problems,
                                                 const Toolchain& toolchain, const Sandbox& sandbox);

// The function that a plan's kernel name means in a module: a shared object, or a cubin. Kind
// kernel_name: none (with the nearest name), several (with all), or arguments that do not fit: `args`
// against the demangled parameter list (on the CPU after the leading hone::Block const&), in a cubin
// also against the sizes that it records. The file is hostile input. `trusted` as Candidate has it.
struct KernelSymbol {
  std::uint64_t offset = 0;          // shared object: from the load address
  std::string symbol, demangled;     // symbol: mangled
};
Result<KernelSymbol> resolve_kernel(std::string_view module, const PlanLaunch& launch, const ProblemShape& problem,
                                    bool trusted = false);

}  // namespace hone

#endif
