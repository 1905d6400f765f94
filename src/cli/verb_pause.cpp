#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/person.h"

namespace hone::cli {
namespace {

struct Options {
  std::string run;
  bool off = false, now = false;
};

Result<int> pause(const Global& global, const Options& options) {
  HONE_TRY(const Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  HONE_CHECK(need_launcher(run, {{"do", "pause"}, {"off", options.off}, {"now", options.now}}));
  if (global.json) fmt::print("{}\n", nlohmann::json{{"schema", "hone.pause/1"}, {"paused", !options.off}}.dump(2));
  else if (options.off) fmt::print("the run goes on\n");
  else fmt::print("{}; `hone pause --off` goes on\n", options.now ? "the turn is cut and will be taken again" : "no further turn begins");
  return 0;
}

}  // namespace

void define_pause(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_flag("--off", options->off, "go on");
  app.add_flag("--now", options->now, "cut the turn that goes on; it is taken again")->excludes("--off");
  app.add_option("--run", options->run, "the run directory (default: the one around the current folder)");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return pause(invocation.global, *options); }; });
}

}  // namespace hone::cli
