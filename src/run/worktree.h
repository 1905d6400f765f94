// What agents may see of a task, as files, with the contract's leak bans applied.
#ifndef HONE_RUN_WORKTREE_H
#define HONE_RUN_WORKTREE_H

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/task.h"
#include "program/candidate.h"

namespace hone {

// Files by path in the worktree:
//   task/             task.yaml, the oracle and other files of the task folder (no built-in baselines' data)
//   include/hone/     headers to read
//   docs/candidate.md how a candidate is written
//   docs/skills/      how to debug, profile, build pipelines; when to read which stands in PROMPT.md
//   candidates/<task>/scratch/<name>/   seed candidates of share/hone/kernels/<task>
//
// A leak ban is a shell pattern (*, ?, [..]; * also matches "/") over these paths, or over the path
// inside the task folder. What it matches is left out; kind contract when it matches nothing, since
// then the ban is misspelt and what it was meant for would leak.
Result<std::map<std::string, std::string>> worktree_files(const Task& task);

// Where this machine keeps what the bans take out: files of the task's folder and of the installation that agents must not
// read there either.
Result<std::vector<fs::path>> banned_files(const Task& task);

// The same bans over any set of files; removes from `files`.
Result<> apply_leak_bans(const Task& task, std::map<std::string, std::string>& files);

}  // namespace hone

#endif
