// What makes agent programs see Hone's tools in a run, and keeps them off its record: RUN/agents.
//
//   mcp.json       the MCP server, for claude (--mcp-config) and for any client with that format
//   settings.json  hooks and permissions, for claude (--settings)
//   config.toml    the same server and settings, for codex (CODEX_HOME/config.toml)
//
// Programs hand on very different parts of their own environment, so everything that the server needs stands in these files.
// Secrets do not: a token is handed on by name.
#ifndef HONE_RUN_AGENT_FILES_H
#define HONE_RUN_AGENT_FILES_H

#include <map>
#include <string>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

// By name below RUN/agents. `root`: where the run will lie. `program`: absolute path of hone.
Result<std::map<std::string, std::string>> agent_files(const fs::path& root, const fs::path& program);

}  // namespace hone

#endif
