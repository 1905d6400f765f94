// An agent program for one turn: started with a prompt, watched, ended, and everything it started with it.
//
// Nothing that the program says is trusted: its exit code, result event, usage, stop reason and session id are
// reported as claims. What a driver itself knows is how the turn ended (`TurnEnd`) and what it saw on the way.
#ifndef HONE_DRIVER_DRIVER_H
#define HONE_DRIVER_DRIVER_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

// "claude/MODEL:EFFORT", "codex/MODEL:EFFORT", "command:PATH [ARGS]", "acp:PATH [ARGS]". Model and effort may be left out.
struct AgentSpec {
  std::string kind;                        // claude, codex, command, acp
  std::string program;                     // of command and acp: the words after the colon; else found in PATH
  std::string model, effort;               // empty: the program's own default
  std::string text;                        // as typed
  std::string name;                        // short, without arguments or secrets: for events and the trace
};
// Kind usage, with the nearest known kind. `tuner` is no driver: a flow hosts it itself.
Result<AgentSpec> parse_agent_spec(std::string_view text);

// What the program reported of its use; none: unknown, which is said as such and never taken for nought.
struct Usage {
  std::optional<std::int64_t> input_tokens, cached_tokens, output_tokens;
  std::optional<double> cost_usd;
};

enum class EventKind { started, text, thought, tool_call, tool_result, usage, retry, permission, note, fault };
std::string_view name_of(EventKind kind);

struct AgentEvent {
  EventKind kind = EventKind::note;
  double at_s = 0;                         // since the turn began
  std::string text;                        // bounded (kEventText bytes), valid UTF-8
  std::string tool;                        // of tool_call and tool_result
  Usage usage;                             // of usage: this turn's so far
};

struct TurnLimits {
  double wall_s = 3600;
  double silence_s = 600;                  // without output, CPU time or work in the launcher's own queue
  std::uint64_t output_bytes = std::uint64_t{256} << 20;
  std::uint64_t line_bytes = std::uint64_t{16} << 20;   // a longer line ends the turn as failed
  double stop_s = 5;                       // between SIGINT, SIGTERM and SIGKILL
};

struct Turn {
  std::string prompt;
  fs::path cwd;                            // the run's worktree
  fs::path config;                         // RUN/agents: mcp.json, settings.json, config.toml written by `hone init`; may be missing
  fs::path log;                            // raw output of the program is kept here, bounded
  std::vector<std::string> env;            // NAME=value: all that the program sees besides PATH, HOME, LANG, TERM, USER, SHELL, TMPDIR
  std::vector<fs::path> writable, hidden;  // with `confined`: a mount namespace of its own
  bool confined = false;
  TurnLimits limits;
  std::function<bool()> busy;              // the launcher has work of this agent in its queue: silence does not count
  std::function<void(const AgentEvent&)> on_event;
  const std::atomic<bool>* cancel = nullptr;
};

// finished: the program said it is done and ended. failed: it said it failed, or died, or could not be understood.
enum class TurnEnd { finished, failed, silent, overtime, flooded, cancelled };
std::string_view name_of(TurnEnd end);

struct TurnResult {
  TurnEnd end = TurnEnd::failed;
  std::string reason;                      // one line for a person: "401 authentication_failed", "no output for 600 s"
  std::optional<int> exit_code, signal;
  Usage usage;
  std::string session;                     // the program's own id, a claim
  std::string last_text;
  double wall_s = 0;
  int left_behind = 0;                     // processes that outlived the program and were ended
};

class Driver {
 public:
  virtual ~Driver() = default;
  // An error only when the program could not be started at all (kinds environment, sandbox_unavailable, usage).
  virtual Result<TurnResult> run(const Turn& turn) = 0;
};
Result<std::unique_ptr<Driver>> make_driver(const AgentSpec& spec);

}  // namespace hone

#endif
