// Runs a verb of this very program as a process of its own: its result is the verb's, its progress is reported while it
// works, and nothing it prints, and no way it dies, reaches the client.
#ifndef HONE_MCP_COMMAND_H
#define HONE_MCP_COMMAND_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "mcp/tool.h"

namespace hone::mcp {

struct Command {
  fs::path program;                       // of hone
  fs::path cwd;                           // empty: this process's
};

// The object that `hone ARGUMENTS --json` prints; an exit code of 1 is no error, since the object says what failed. Errors:
// the verb's own with their kind; cancelled; internal when it died or printed something else.
Result<nlohmann::json> run_verb(const Command& command, std::vector<std::string> arguments, const Call& call);
// What it prints without --json.
Result<std::string> run_verb_for_text(const Command& command, std::vector<std::string> arguments, const Call& call);

}  // namespace hone::mcp

#endif
