#include <CLI/CLI.hpp>

#include "cli/look.h"

namespace hone::cli {
namespace {

Result<int> compile(const Global& global, const LookOptions& options) {
  HONE_TRY(const Look made, look(global, options, "compile", nlohmann::json::object(),
                                 [&](const Task& task, const Candidate& candidate, Bench bench) -> Result<nlohmann::json> {
                                   HONE_TRY(const Compiled compiled, compile_for(task, candidate, options.workloads, bench));
                                   return compile_report(task, candidate, compiled, bench);
                                 }));
  if (global.json) fmt::print("{}\n", made.report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else fmt::print("{}", compile_text(made.report));
  return report_failures(global, made);
}

}  // namespace

void define_compile(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<LookOptions>();
  add_look_options(app, *options);
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return compile(invocation.global, *options); };
  });
}

}  // namespace hone::cli
