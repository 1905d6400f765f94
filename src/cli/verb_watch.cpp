#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "cli/person.h"
#include "flow/observer.h"
#include "flow/trace.h"
#include "flow/watch.h"

namespace hone::cli {
namespace {

using nlohmann::json;

constexpr double kRedrawSeconds = 1;

struct Options {
  std::string run, agent, every = "30m";
  std::vector<std::string> pass_env;
  bool once = false;
};

int columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? size.ws_col : 100;
}

// False: interrupted.
bool wait(double seconds) {
  for (const double end = now_s() + seconds; now_s() < end;) {
    if (interrupted()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return !interrupted();
}

Result<int> observe_run(const Global& global, const Run& run, const Options& options) {
  HONE_TRY(const double every, parse_duration(options.every));
  if (every < 1) return fail(make_error(ErrorKind::usage, "--every {} is shorter than a second", options.every));
  HONE_TRY(const AgentSpec spec, parse_agent_spec(options.agent));
  HONE_TRY(const std::unique_ptr<Driver> driver, make_driver(spec));
  ObserverOptions with;
  with.confined = global.sandbox == "on";
  with.all_said = spec.kind == "command";
  with.cancel = &interrupted();
  HONE_TRY(with.env, passed_on(options.pass_env));
  for (;;) {
    HONE_TRY(const Summary summary, summarize(run));
    const auto seen = observe(summary, *driver, with);
    if (!seen && (options.once || seen.error().kind == ErrorKind::cancelled)) return fail(seen.error());
    if (!seen) report_error(global, seen.error());     // the next look may do better
    else if (global.json)
      fmt::print("{}\n", json{{"schema", "hone.observation/1"}, {"file", seen->file.string()}, {"statements", seen->summary.statements}, {"unproved", seen->summary.unproved},
                              {"text", seen->summary.text}}
                             .dump(2, ' ', false, json::error_handler_t::replace));
    else fmt::print("{}\n{} of {} statements cite no row that exists; {}\n", seen->summary.text, seen->summary.unproved, seen->summary.statements, seen->file.string());
    std::fflush(stdout);
    if (options.once || summary.state != "running") return 0;
    if (!wait(every)) return 0;
  }
}

Result<int> watch(const Global& global, const Options& options) {
  HONE_TRY(const Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  if (!options.agent.empty()) return observe_run(global, run, options);
  const bool once = options.once || global.json || ::isatty(STDOUT_FILENO) != 1;
  for (;;) {
    const json live = live_of(run);
    HONE_TRY(const Summary summary, summarize(run));
    const auto events = last_events(run.root / "trace", global.json ? 50 : 5);
    if (global.json) fmt::print("{}\n", watch_json({summary, live, events}).dump(2, ' ', false, json::error_handler_t::replace));
    else if (once) fmt::print("{}", watch_text({summary, live, events}, columns()));
    // From the top, each line cleared behind its end: nothing flickers.
    else {
      std::string frame = "\033[H";
      for (const char c : watch_text({summary, live, events}, columns() - 1)) frame += c == '\n' ? std::string("\033[K\n") : std::string(1, c);
      fmt::print("{}\033[J", frame);
      std::fflush(stdout);
    }
    if (once) return 0;
    if (!wait(kRedrawSeconds)) return 0;
  }
}

}  // namespace

void define_watch(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("--run", options->run, "the run directory (default: the one around the current folder)");
  app.add_flag("--once", options->once, "one look, not redrawn");
  app.add_option("--agent", options->agent, "let this agent write a summary from the run's records: claude/MODEL:EFFORT, codex/MODEL:EFFORT, command:PATH, acp:PATH");
  app.add_option("--every", options->every, "how often it does, as long as the run goes on")->capture_default_str();
  app.add_option("--pass-env", options->pass_env, "name of a variable of this environment that its program sees");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return watch(invocation.global, *options); }; });
}

}  // namespace hone::cli
