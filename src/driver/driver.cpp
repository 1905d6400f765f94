// Placeholder until the room's own drivers are merged: `command:` only, without any of their guards.
#include "driver/driver.h"

#include <cstdlib>
#include <sstream>

#include "base/clock.h"
#include "base/process.h"

namespace hone {
namespace {

class CommandDriver : public Driver {
 public:
  explicit CommandDriver(std::vector<std::string> argv) : argv_(std::move(argv)) {}
  Result<TurnResult> run(const Turn& turn) override {
    ProcessSpec spec;
    spec.argv = argv_;
    spec.env = {"HOME=" + turn.cwd.string(), "LC_ALL=C.UTF-8"};
    spec.env.insert(spec.env.end(), turn.env.begin(), turn.env.end());
    spec.cwd = turn.cwd.string();
    spec.stdin_text = turn.prompt;
    spec.timeout_s = turn.limits.wall_s;
    spec.cancel = turn.cancel;
    if (turn.on_event) turn.on_event({EventKind::started, 0, {}, {}, {}});
    HONE_TRY(const ProcessOutcome outcome, run_process(spec));
    (void)write_file_atomic(turn.log, outcome.out + outcome.err);
    TurnResult result;
    result.end = outcome.cancelled ? TurnEnd::cancelled : outcome.timed_out ? TurnEnd::overtime : outcome.ok() ? TurnEnd::finished : TurnEnd::failed;
    result.reason = fmt::format("exit {}", outcome.exit_code);
    result.exit_code = outcome.exit_code;
    result.wall_s = outcome.wall_s;
    result.last_text = outcome.out.substr(0, 1000);
    return result;
  }

 private:
  std::vector<std::string> argv_;
};

}  // namespace

std::string_view name_of(EventKind kind) {
  static constexpr std::string_view names[] = {"started", "text", "thought", "tool_call", "tool_result", "usage", "retry", "permission", "note", "fault"};
  return names[static_cast<int>(kind)];
}

std::string_view name_of(TurnEnd end) {
  static constexpr std::string_view names[] = {"finished", "failed", "silent", "overtime", "flooded", "cancelled"};
  return names[static_cast<int>(end)];
}

Result<AgentSpec> parse_agent_spec(std::string_view text) {
  if (!text.starts_with("command:")) return fail(make_error(ErrorKind::usage, "agent {} is not known", text).with_hint("command:PATH"));
  AgentSpec spec;
  spec.kind = "command";
  spec.text = text;
  spec.program = text.substr(8);
  spec.name = "command:" + fs::path(spec.program.substr(0, spec.program.find(' '))).filename().string();
  return spec;
}

Result<std::unique_ptr<Driver>> make_driver(const AgentSpec& spec) {
  std::istringstream words(spec.program);
  std::vector<std::string> argv;
  for (std::string word; words >> word;) argv.push_back(word);
  return std::unique_ptr<Driver>(std::make_unique<CommandDriver>(std::move(argv)));
}

}  // namespace hone
