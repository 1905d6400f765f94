#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/person.h"
#include "run/summary.h"

namespace hone::cli {
namespace {

Result<int> status(const Global& global, const std::string& run_dir) {
  HONE_TRY(const Run run, find_run(run_dir.empty() ? std::nullopt : std::optional<fs::path>(run_dir)));
  const nlohmann::json live = live_of(run);
  HONE_TRY(const auto summary, summarize(run));
  if (global.json) fmt::print("{}\n", status_json(summary, live).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else fmt::print("{}", status_text(summary, live));
  return summary.ledger.faults.empty() ? 0 : 1;
}

}  // namespace

void define_status(CLI::App& app, Invocation& invocation) {
  auto run = std::make_shared<std::string>();
  app.add_option("--run", *run, "the run directory (default: the one around the current folder)");
  app.callback([&invocation, run] { invocation.action = [&invocation, run] { return status(invocation.global, *run); }; });
}

}  // namespace hone::cli
