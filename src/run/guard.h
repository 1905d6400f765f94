// The guard of an agent program's own tools: what it may write is the worktree, and never the run's record.
//
// This stops accidents and plain attempts before they happen. It is no sandbox: a command can hide what it writes. What keeps
// the record right is the launcher, which alone writes it and restores what was changed (run/safe.h).
#ifndef HONE_RUN_GUARD_H
#define HONE_RUN_GUARD_H

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

// Where `path`, seen from `cwd`, leads when every link is followed, those to nothing too: what a write would touch.
// Kind usage for a relative cwd and for links without end.
Result<fs::path> written_path(const fs::path& path, const fs::path& cwd);

// The input of a PreToolUse hook: tool_name, tool_input, cwd. Editing tools may write below `root`/worktree but not in its .git;
// a shell command may only read what else lies in `root`. Kind forbidden with the reason, for what cannot be understood as well.
Result<> guard_tool(const fs::path& root, const nlohmann::json& input);
// The same of the bytes that the hook was given.
Result<> guard_hook(const fs::path& root, std::string_view input);

}  // namespace hone

#endif
