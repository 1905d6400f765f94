// What the verbs that look at one candidate have in common: their flags, and the look itself here or on a service.
#ifndef HONE_CLI_LOOK_H
#define HONE_CLI_LOOK_H

#include <functional>
#include <nlohmann/json.hpp>

#include "cli/subject.h"
#include "cli/verb.h"
#include "inspect/compile.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct LookOptions {
  std::string candidate = {}, task = {}, run = {}, architecture = {}, remote = {};
  std::vector<std::string> workloads = {};
  // Of the vendor, which watches the candidate run on the device, and the workload that it takes when none is named; no
  // tool: nothing runs.
  std::string tool = {}, of_task = {};
};
void add_look_options(CLI::App& app, LookOptions& options);

struct Look {
  Subject subject;
  Candidate candidate;
  nlohmann::json report;
};
using LookHere = std::function<Result<nlohmann::json>(const Task&, const Candidate&, Bench)>;
// The report of a job of `kind` with `further` in its request, or of `here` when no service is named. Errors are located.
Result<Look> look(const Global& global, const LookOptions& options, const std::string& kind,
                  const nlohmann::json& further, const LookHere& here);

// Prints what did not compile, each distinct error once. The exit code: 1 when there is any.
int report_failures(const Global& global, const Look& look);

}  // namespace hone::cli

#endif
