#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/person.h"

namespace hone::cli {
namespace {

Result<int> stop(const Global& global, const std::string& run_dir) {
  HONE_TRY(const Run run, find_run(run_dir.empty() ? std::nullopt : std::optional<fs::path>(run_dir)));
  HONE_CHECK(need_launcher(run, {{"do", "stop"}}));
  if (global.json) fmt::print("{}\n", nlohmann::json{{"schema", "hone.stop/1"}, {"stopping", true}}.dump(2));
  else fmt::print("stopping; what is finished is kept. Go on with: hone run --resume --run {}\n", shell_word(run.root.string()));
  return 0;
}

}  // namespace

void define_stop(CLI::App& app, Invocation& invocation) {
  auto run = std::make_shared<std::string>();
  app.add_option("--run", *run, "the run directory (default: the one around the current folder)");
  app.callback([&invocation, run] { invocation.action = [&invocation, run] { return stop(invocation.global, *run); }; });
}

}  // namespace hone::cli
