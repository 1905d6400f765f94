#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/app.h"
#include "mcp/resources.h"
#include "mcp/stdio.h"
#include "mcp/tools.h"
#include "run/run.h"

namespace hone::cli {
namespace {

struct Options {
  std::string run, level = "error";
};

Result<mcp::Place> find_place(const Options& options) {
  std::error_code code;
  std::optional<Run> run;
  if (options.run.empty()) {
    HONE_TRY(run, find_run_here());
  } else {
    HONE_TRY(run, find_run(fs::path(options.run)));
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (code) return fail(ErrorKind::environment, "cannot tell where this program lies: {}", code.message());
  const fs::path shelf = run ? run->worktree() / ".hone" : cache_dir() / "mcp";
  mcp::Command command{program, run ? run->worktree() : fs::path()};
  return std::make_shared<const mcp::Workplace>(mcp::Workplace{std::move(run), std::move(command), mcp::Shelf(shelf), verb_names()});
}

Result<int> serve(const Global& global, const Options& options) {
  if (global.sandbox == "off") return fail(make_error(ErrorKind::usage, "agents do not work without the sandbox").with_hint("leave --sandbox out"));
  HONE_TRY(const mcp::Place place, find_place(options));
  mcp::ServerOptions server;
  server.version = HONE_VERSION;
  server.instructions = mcp::instructions(*place);
  server.tools = mcp::make_tools(place);
  server.resources = mcp::make_resources(*place);
  if (options.level == "debug") server.log = [](const std::string& line) { fmt::print(stderr, "mcp: {}\n", line); };
  HONE_CHECK(mcp::serve_stdio(std::move(server), interrupted()));
  return 0;
}

}  // namespace

void define_mcp(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("--run", options->run, "the run to work in (default: the one around the current folder, else none)");
  app.add_option("--log-level", options->level, "debug: every message on standard error")->check(CLI::IsMember({"error", "debug"}))->capture_default_str();
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return serve(invocation.global, *options); }; });
}

}  // namespace hone::cli
