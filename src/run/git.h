// git's own program on a run's worktree, so that neither the person's configuration nor what an
// agent left in the repository (hooks, filters, configured commands) decides what happens.
#ifndef HONE_RUN_GIT_H
#define HONE_RUN_GIT_H

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

class Git {
 public:
  explicit Git(fs::path worktree) : worktree_(std::move(worktree)) {}

  Result<> init() const;
  // Stages `paths` (additions, changes and removals) and commits just them as hone. No change: no commit.
  Result<> commit(const std::vector<std::string>& paths, const std::string& message) const;
  // stdout of a read-only command.
  Result<std::string> read(const std::vector<std::string>& arguments) const;

 private:
  Result<std::string> git(const std::vector<std::string>& arguments, const std::vector<int>& accepted = {0}) const;
  Result<> shield() const;
  fs::path worktree_;
};

// Unified diff of two folders with the labels a and b; empty when equal.
Result<std::string> diff_folders(const fs::path& a, const fs::path& b);

}  // namespace hone

#endif
