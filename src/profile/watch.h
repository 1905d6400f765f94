// A candidate's launches under a tool that watches them: what `profile` and `sanitize` have in common.
#ifndef HONE_PROFILE_WATCH_H
#define HONE_PROFILE_WATCH_H

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "inspect/compile.h"
#include "judge/judge.h"

namespace hone {

struct WatchRequest {
  std::vector<std::string> workloads = {};  // ids; empty: one, see the verb
  std::optional<std::uint64_t> seed = {};   // of the inputs; none: any
  double timeout_s = 300;                   // of one tool over one workload
  const std::atomic<bool>* cancel = nullptr;
  Progress progress = {};
};

// Kind contract: the task's device is none that tools watch; environment: the tool is not here. Asks for no GPU.
Result<> can_watch(const Task& task, const std::string& tool);

// The variables, with numbers and words of tools as they are documented, whatever the user's language.
std::vector<std::string> in_plain_words(std::vector<std::string> env);

// A tool over one workload's launches, once.
struct Watched {
  std::string said;            // by the tool, on both of its outputs
  bool ended = true;           // false: its time was up, and `fault` says so; what it wrote until then is there
  std::optional<Error> fault;  // of the process that it watched: a crash, a refused launch
  bool answered = false;       // the fault, or that there is none, is the process's own word
  double seconds = 0;
};
// `tool`: its command line up to the program; `folder`: where it works. Kinds: cancelled, output_limit, environment.
Result<Watched> watch(const std::vector<std::string>& tool, const WatchedCommand& command, const fs::path& folder,
                      const WatchRequest& request);

// Does `each` workload of the request, compiled, and adds what it gives to that workload's row. The report: task, candidate,
// sha256, architecture, device, failed, workloads [{id, error, ...}]. `otherwise`: the one that is meant where none is named.
// An error that is a candidate's (exit code 1 or 2) is its workload's; another one ends everything.
using WatchEach = std::function<Result<nlohmann::json>(const Workload& workload, const WatchSpec& spec, const fs::path& folder)>;
Result<nlohmann::json> watch_report(const Task& task, const Candidate& candidate, const WatchRequest& request, const Workload& otherwise,
                                    Bench bench, const WatchEach& each);

}  // namespace hone

#endif
