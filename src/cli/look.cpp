#include "cli/look.h"

#include <CLI/CLI.hpp>

#include "cli/remote.h"
#include "profile/watch.h"
#include "wire/wire.h"

namespace hone::cli {

void add_look_options(CLI::App& app, LookOptions& options) {
  app.add_option("candidate", options.candidate, "folder of a candidate")->required();
  app.add_option("--task", options.task, "task by name or folder; found by itself in a run and in kernels/<task>/");
  app.add_option("--run", options.run, "run that the candidate is in; found by itself inside one");
  app.add_option("--workload", options.workloads,
                 options.tool.empty() ? "only for these workloads" : "these workloads (default: one, the task's " + options.of_task + ")")
      ->delimiter(',')
      ->take_all();
  if (options.tool.empty()) app.add_option("--arch", options.architecture, "cpu, sm_90a or sm_100a, which need not be here (default: the task's)");
  app.add_option("--remote", options.remote,
                 "URL of the evaluation service that does it; `local`: here (default: HONE_URL, then the run's)");
}

Result<Look> look(const Global& global, const LookOptions& options, const std::string& kind,
                  const nlohmann::json& further, const LookHere& here) {
  HONE_TRY(Subject subject, find_subject(options.candidate, options.task, options.run));
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
    if (!options.tool.empty()) HONE_CHECK(can_watch(subject.task, options.tool));
    progress_printer(global)(fmt::format("{}: compiling", candidate.name));
    HONE_TRY(const auto environment, options.tool.empty() ? open_target_environment(global, target_architecture(subject.task, options.architecture, nullptr))
                                                          : open_environment(global, subject.task.device));
    return here(subject.task, candidate, environment->bench());
  }();
  end_progress();
  if (!report) return fail(located(report.error(), candidate));
  return Look{std::move(subject), std::move(candidate), *std::move(report)};
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
