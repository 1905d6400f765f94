#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/look.h"
#include "profile/sanitize.h"

namespace hone::cli {
namespace {

struct Options {
  LookOptions look{.tool = "compute-sanitizer", .of_task = "smallest"};
  std::vector<std::string> tools;
  std::string timeout;
};

Result<int> sanitize(const Global& global, const Options& options) {
  WatchRequest request{.workloads = options.look.workloads, .cancel = &interrupted(), .progress = progress_printer(global)};
  nlohmann::json further = nlohmann::json::object();
  if (!options.tools.empty()) further["tools"] = options.tools;
  if (!options.timeout.empty()) {
    HONE_TRY(request.timeout_s, parse_duration(options.timeout));
    further["tool_timeout_s"] = request.timeout_s;
  }
  HONE_TRY(const Look made, look(global, options.look, "sanitize", further, [&](const Task& task, const Candidate& candidate, Bench bench) {
             return sanitize_report(task, candidate, options.tools, request, bench);
           }));
  if (global.json)
    fmt::print("{}\n", made.report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}", sanitize_text(made.report));
  const int failures = report_failures(global, made);
  return made.report.value("findings", std::size_t{0}) > 0 ? 1 : failures;
}

}  // namespace

void define_sanitize(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  add_look_options(app, options->look);
  app.add_option("--tool", options->tools, "only these of memcheck, racecheck, synccheck, initcheck")
      ->delimiter(',')
      ->take_all()
      ->check(CLI::IsMember(sanitizer_tools()));
  app.add_option("--timeout", options->timeout, "of one tool over one workload: 10m (default: 5m)");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return sanitize(invocation.global, *options); }; });
}

}  // namespace hone::cli
