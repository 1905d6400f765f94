// A run directory: where its parts are, and how it is found from --run or the current folder.
//
//   PROMPT.md  manifest.json  flowverse.yaml
//   ledger.jsonl  receipts/                  the record, outside what agents may write
//   agents/                                  what makes agent programs see Hone's tools (agent_files.h)
//   worktree/                                a git repository: what agents see
//     candidates/<task>/scratch/             work in progress
//     candidates/<task>/frontier/            retained candidates and index.json
#ifndef HONE_RUN_RUN_H
#define HONE_RUN_RUN_H

#include <optional>
#include <string>

#include "base/error.h"
#include "base/fs.h"
#include "contract/task.h"
#include "run/manifest.h"

namespace hone {

struct Run {
  fs::path root;                 // absolute
  Manifest manifest;

  fs::path ledger() const { return root / "ledger.jsonl"; }
  fs::path receipts() const { return root / "receipts"; }
  fs::path agents() const { return root / "agents"; }
  fs::path worktree() const { return root / "worktree"; }
  fs::path lock() const { return root / "run.lock"; }
  fs::path candidates() const { return worktree() / "candidates" / manifest.task; }
  fs::path scratch() const { return candidates() / "scratch"; }
  fs::path frontier() const { return candidates() / "frontier"; }
};

// `root` is the run directory itself. Kind not_found when it is none.
Result<Run> open_run(const fs::path& root);
// The run that `from` (default: the current folder) is or lies in. Kind not_found, with a hint.
Result<Run> find_run(const std::optional<fs::path>& from);
// The same, but no error where there is none: nullopt.
Result<std::optional<Run>> find_run_here();

// The run's task, unchanged since `hone init`; kind contract when its hash differs.
Result<Task> task_of(const Run& run);

// A folder of the run's scratch, frontier or anywhere: `name` as typed. A bare name is looked up in
// scratch, then in the frontier.
fs::path candidate_path(const Run& run, const std::string& name);

}  // namespace hone

#endif
