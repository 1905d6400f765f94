#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/look.h"
#include "profile/profile.h"

namespace hone::cli {
namespace {

struct Options {
  LookOptions look{.tool = "ncu", .of_task = "first"};
  std::string out, timeout;
};

Result<int> profile(const Global& global, const Options& options) {
  WatchRequest request{.workloads = options.look.workloads, .cancel = &interrupted(), .progress = progress_printer(global)};
  nlohmann::json further = nlohmann::json::object();
  if (!options.timeout.empty()) {
    HONE_TRY(request.timeout_s, parse_duration(options.timeout));
    further["tool_timeout_s"] = request.timeout_s;
  }
  HONE_TRY(Look made, look(global, options.look, "profile", further, [&](const Task& task, const Candidate& candidate, Bench bench) {
             return profile_report(task, candidate, request, bench);
           }));
  const fs::path home = made.subject.in_run ? made.subject.run->worktree() / ".hone" : data_dir();
  HONE_CHECK(keep_raw_reports(made.report, options.out.empty()
                                               ? home / "profiles" / fmt::format("{}-{:.8}", made.candidate.name, made.candidate.sha256)
                                               : fs::path(options.out)));
  if (global.json)
    fmt::print("{}\n", made.report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}", profile_text(made.report));
  return report_failures(global, made);
}

}  // namespace

void define_profile(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  add_look_options(app, options->look);
  app.add_option("--out", options->out,
                 "folder for ncu's own reports (default: .hone/profiles in a run, else profiles of the data folder)");
  app.add_option("--timeout", options->timeout, "of one workload: 10m (default: 5m)");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return profile(invocation.global, *options); }; });
}

}  // namespace hone::cli
