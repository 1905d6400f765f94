#include "cli/look.h"

#include <CLI/CLI.hpp>

#include "cli/remote.h"
#include "wire/wire.h"

namespace hone::cli {

void add_look_options(CLI::App& app, LookOptions& options) {
  app.add_option("candidate", options.candidate, "folder of a candidate")->required();
  app.add_option("--task", options.task, "task by name or folder; found by itself in a run and in kernels/<task>/");
  app.add_option("--run", options.run, "run that the candidate is in; found by itself inside one");
  app.add_option("--workload", options.workloads, "only for these workloads")->delimiter(',')->take_all();
  app.add_option("--arch", options.architecture, "cpu, sm_90a or sm_100a, which need not be here (default: the task's)");
  app.add_option("--remote", options.remote,
                 "URL of the evaluation service that does it; `local`: here (default: HONE_URL, then the run's)");
}

Result<Look> look(const Global& global, const LookOptions& options, const std::string& kind,
                  const nlohmann::json& further, const LookHere& here) {
  HONE_TRY(const Subject subject, find_subject(options.candidate, options.task, options.run));
  HONE_TRY(Candidate candidate, load_candidate_of(subject, options.candidate));
  HONE_TRY(auto service, find_service(global, options.remote, subject.remote()));
  const auto report = [&]() -> Result<nlohmann::json> {
    if (service) {
      JudgeRequest request;
      request.candidate = candidate;
      request.workloads = options.workloads;
      nlohmann::json body = wire::bench_request(subject.task, request);
      if (!options.architecture.empty()) body["architecture"] = options.architecture;
      body.update(further);
      return client::ask(*service, kind, std::move(body));
    }
    progress_printer(global)(fmt::format("{}: compiling", candidate.name));
    HONE_TRY(const auto environment, open_target_environment(global, target_architecture(subject.task, options.architecture, nullptr)));
    HONE_TRY(const Compiled compiled, compile_for(subject.task, candidate, options.workloads, environment->bench()));
    return here(subject.task, candidate, compiled, environment->bench());
  }();
  end_progress();
  if (!report) return fail(located(report.error(), candidate));
  return Look{std::move(candidate), *report};
}

int report_failures(const Global& global, const Look& look) {
  const auto errors = compile_errors(look.report);
  if (!global.json)
    for (const auto& [error, workloads] : errors) {
      Error shown = located(error, look.candidate);
      shown.notes.push_back(fmt::format("for workload{} {}", workloads.size() == 1 ? "" : "s", fmt::join(workloads, ", ")));
      report_error(global, shown);
    }
  return errors.empty() ? 0 : 1;
}

}  // namespace hone::cli
