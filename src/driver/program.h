// The parts that the drivers share: events, the verdict on a turn, the MCP server that `hone init` described.
#ifndef HONE_DRIVER_PROGRAM_H
#define HONE_DRIVER_PROGRAM_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/child.h"
#include "driver/driver.h"

namespace hone {

// What a dialect has understood so far.
struct Heard {
  std::optional<bool> success;                 // of the program's own closing event; none: it sent none
  std::string reason, session, last_text;
  Usage usage;
};

// A conversation that knows the turn's events and its clock.
class Dialect : public Conversation {
 public:
  explicit Dialect(const Turn& turn);
  void tell(EventKind kind, std::string_view text = {}, std::string_view tool = {});
  void tell_usage();
  const Heard& heard() const { return heard_; }

 protected:
  const Turn& turn_;
  Heard heard_;

 private:
  double start_s_;
};

// Runs the program and says how the turn ended: by what the launcher did, else by closing event and exit code together.
Result<TurnResult> run_dialect(const ChildSpec& spec, const Turn& turn, Dialect& dialect);

// What understands the lines of one kind of program, apart from any program; the turn has to outlive it.
std::unique_ptr<Dialect> make_command_dialect(const Turn& turn);
std::unique_ptr<Dialect> make_claude_dialect(const Turn& turn);
std::unique_ptr<Dialect> make_codex_dialect(const Turn& turn);
std::unique_ptr<Dialect> make_acp_dialect(const Turn& turn);

struct McpServer {
  std::string name, command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
};
// Of CONFIG/mcp.json; none when there is no such file. Kind contract: it is malformed.
Result<std::vector<McpServer>> mcp_servers(const fs::path& config);

// Hone's own variables of a turn. An agent program may hand on next to nothing of its environment to the servers and shells that
// it starts, where `hone` has to know that it works in a turn.
std::map<std::string, std::string> own_variables(const Turn& turn);

std::unique_ptr<Driver> make_command_driver(const AgentSpec& spec);
std::unique_ptr<Driver> make_claude_driver(const AgentSpec& spec);
std::unique_ptr<Driver> make_codex_driver(const AgentSpec& spec);
std::unique_ptr<Driver> make_acp_driver(const AgentSpec& spec);

// The words of a program line; quotes keep blanks together.
std::vector<std::string> words_of(std::string_view line);

}  // namespace hone

#endif
