#include "run/git.h"

#include "base/process.h"

namespace hone {
namespace {

// Nothing of the person's or the machine's git configuration, identity or environment.
std::vector<std::string> git_environment() {
  return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          "HOME=/nonexistent",
          "LC_ALL=C",
          "TZ=UTC",
          "GIT_CONFIG_NOSYSTEM=1",
          "GIT_CONFIG_GLOBAL=/dev/null",
          "GIT_CONFIG_SYSTEM=/dev/null",
          "GIT_ATTR_NOSYSTEM=1",
          "GIT_TERMINAL_PROMPT=0",
          "GIT_OPTIONAL_LOCKS=0",
          "GIT_ALLOW_PROTOCOL=none",
          "GIT_AUTHOR_NAME=hone",
          "GIT_AUTHOR_EMAIL=hone@localhost",
          "GIT_COMMITTER_NAME=hone",
          "GIT_COMMITTER_EMAIL=hone@localhost"};
}

Result<ProcessOutcome> run_git(std::vector<std::string> arguments, const fs::path& cwd) {
  ProcessSpec spec;
  spec.argv = {"git"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.env = git_environment();
  spec.cwd = cwd.string();
  spec.timeout_s = 120;
  spec.stdout_limit = std::size_t{16} << 20;
  auto outcome = run_process(spec);
  if (!outcome) return fail(std::move(outcome.error()).with_hint("install git: a run's worktree is a git repository"));
  return outcome;
}

Error git_error(const std::vector<std::string>& arguments, const ProcessOutcome& outcome, const fs::path& where) {
  std::string verb;
  for (const std::string& each : arguments)
    if (!each.empty() && each[0] != '-') {
      verb = each;
      break;
    }
  std::string reason = outcome.err.substr(0, outcome.err.find('\n'));
  if (outcome.timed_out) reason = "it did not end in time";
  if (reason.empty()) reason = outcome.signal != 0 ? fmt::format("signal {}", outcome.signal) : fmt::format("exit {}", outcome.exit_code);
  return make_error(ErrorKind::io, "git {} failed: {}", verb, reason).at({where.string()});
}

}  // namespace

Result<> Git::init() const {
  const std::vector<std::string> arguments = {"init", "-q", "--template=", "--initial-branch=main", worktree_.string()};
  HONE_TRY(const ProcessOutcome outcome, run_git(arguments, worktree_));
  if (!outcome.ok()) return fail(git_error(arguments, outcome, worktree_));
  return {};
}

// An agent can write the repository's own files. Attributes of the highest precedence switch every
// filter and diff driver off; the configuration keys that start programs are overridden in git().
Result<> Git::shield() const {
  const fs::path dir = worktree_ / ".git";
  std::error_code code;
  const fs::file_status status = fs::symlink_status(dir, code);
  if (code || status.type() != fs::file_type::directory || fs::exists(dir / "commondir", code))
    return fail(make_error(ErrorKind::contract, "{} is not the repository that `hone init` made", dir.string())
                    .at({dir.string()})
                    .with_hint("the frontier's record is in the ledger; restore the repository or make a new run"));
  HONE_CHECK(make_dirs(dir / "info"));
  return write_file_atomic(dir / "info/attributes", "* -filter -ident -text -working-tree-encoding !diff !merge\n");
}

Result<std::string> Git::git(const std::vector<std::string>& arguments, const std::vector<int>& accepted) const {
  HONE_CHECK(shield());
  std::vector<std::string> all = {"--no-pager",
                                  "--git-dir=" + (worktree_ / ".git").string(),
                                  "--work-tree=" + worktree_.string()};
  for (const char* setting :
       {"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
        "core.autocrlf=false", "core.bare=false", "commit.gpgSign=false", "diff.external=", "gc.auto=0", "maintenance.auto=false",
        "protocol.allow=never", "user.useConfigOnly=true"}) {
    all.emplace_back("-c");
    all.emplace_back(setting);
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  HONE_TRY(const ProcessOutcome outcome, run_git(all, worktree_));
  for (const int code : accepted)
    if (outcome.exit_code == code) return outcome.out;
  return fail(git_error(arguments, outcome, worktree_));
}

Result<> Git::commit(const std::vector<std::string>& paths, const std::string& message) const {
  std::vector<std::string> add = {"add", "--all", "--force", "--"};
  add.insert(add.end(), paths.begin(), paths.end());
  HONE_CHECK(git(add));
  std::vector<std::string> changed = {"diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "--"};
  changed.insert(changed.end(), paths.begin(), paths.end());
  auto same = git(changed);
  if (same) return {};
  std::vector<std::string> commit = {"commit", "-q", "--no-verify", "-m", message, "--"};
  commit.insert(commit.end(), paths.begin(), paths.end());
  HONE_CHECK(git(commit));
  return {};
}

Result<std::string> Git::read(const std::vector<std::string>& arguments) const { return git(arguments); }

Result<std::string> diff_folders(const fs::path& a, const fs::path& b) {
  const std::vector<std::string> arguments = {"--no-pager", "-c", "core.attributesFile=/dev/null", "diff", "--no-index", "--no-color",
                                              "--no-ext-diff", "--no-textconv", "--no-prefix", "--", a.filename().string(), b.filename().string()};
  HONE_TRY(const ProcessOutcome outcome, run_git(arguments, a.parent_path()));
  if (outcome.exit_code != 0 && outcome.exit_code != 1) return fail(git_error(arguments, outcome, a));
  return outcome.out;
}

}  // namespace hone
