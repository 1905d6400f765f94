#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "run/summary.h"

namespace hone::cli {
namespace {

int report(const Global& global, const std::string& run_dir) {
  auto run = find_run(run_dir.empty() ? std::nullopt : std::optional<fs::path>(run_dir));
  if (!run) return report_error(global, run.error());
  const auto summary = summarize(*run);
  if (!summary) return report_error(global, summary.error());
  if (global.json) fmt::print("{}\n", report_json(*summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else fmt::print("{}", report_markdown(*summary));
  return 0;
}

}  // namespace

void define_report(CLI::App& app, Invocation& invocation) {
  auto run = std::make_shared<std::string>();
  app.add_option("--run", *run, "the run directory (default: the one around the current folder)");
  app.callback([&invocation, run] { invocation.action = [&invocation, run] { return report(invocation.global, *run); }; });
}

}  // namespace hone::cli
