#include "run/init.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "run/agent_files.h"
#include "run/frontier.h"
#include "run/git.h"
#include "run/prompt.h"
#include "run/worktree.h"

namespace hone {
namespace {

constexpr std::size_t kLongestName = 100;

bool good_name(const std::string& name) {
  if (name.empty() || name[0] == '.' || name[0] == '-') return false;
  for (const char c : name)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.')) return false;
  return true;
}

Error exists_error(const fs::path& path) {
  return make_error(ErrorKind::usage, "{} exists already", path.string())
      .at({path.string()})
      .with_hint("choose another --name or --dir, or go on with `hone run --resume --run " + shell_word(path.string()) + "`");
}

bool occupied(const fs::path& path) {
  std::error_code code;
  return fs::exists(fs::symlink_status(path, code));
}

Result<fs::path> place_of(const Task& task, const InitRequest& request) {
  if (request.name.size() > kLongestName)
    return fail(make_error(ErrorKind::usage, "a run's name has at most {} characters, this one has {}", kLongestName, request.name.size()));
  if (!request.name.empty() && !good_name(request.name))
    return fail(make_error(ErrorKind::usage, "\"{}\" is not a name for a run", request.name)
                    .with_hint("letters, digits, '-', '_' and '.' only, a letter, a digit or '_' first"));
  std::error_code code;
  if (request.dir) {
    const fs::path path = fs::weakly_canonical(fs::absolute(*request.dir, code), code);
    if (occupied(path)) return fail(exists_error(path));
    return path;
  }
  const fs::path runs = data_dir() / "runs";
  if (!request.name.empty()) {
    if (occupied(runs / request.name)) return fail(exists_error(runs / request.name));
    return runs / request.name;
  }
  for (int n = 1;; ++n)
    if (const fs::path path = runs / fmt::format("{}-{}", task.name, n); !occupied(path)) return path;
}

}  // namespace

Result<bool> rename_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  int code = errno;
  if (code == EINVAL || code == ENOSYS) {   // a file system without the flag
    if (occupied(to)) return false;
    if (::rename(from.c_str(), to.c_str()) == 0) return true;
    code = errno;
  }
  if (code == EEXIST || code == ENOTEMPTY) return false;
  return fail(make_error(ErrorKind::io, "cannot make {}: {}", to.string(), std::strerror(code)).at({to.string()}));
}

Result<Run> init_run(const Task& task, const InitRequest& request) {
  HONE_TRY(const fs::path place, place_of(task, request));
  HONE_TRY(const auto files, worktree_files(task));

  Manifest manifest;
  manifest.name = request.name.empty() ? place.filename().string() : request.name;
  manifest.created = utc_timestamp();
  manifest.task = task.name;
  manifest.task_sha256 = task.sha256;
  std::error_code code;
  manifest.task_source = request.task_source;
  if (fs::path(request.task_source).has_parent_path() || fs::is_directory(request.task_source, code))
    manifest.task_source = fs::canonical(task.folder, code).string();
  manifest.judge_version = HONE_VERSION;
  HONE_TRY(const std::string binary, read_file("/proc/self/exe"));
  manifest.judge_sha256 = sha256(binary);
  manifest.remote = request.remote;
  manifest.device = request.device.is_object()
                        ? request.device
                        : nlohmann::json{{"name", task.device}, {"model", nullptr}, {"architecture", nullptr}, {"workers", nullptr}};
  manifest.compilers = Toolchain::compilers();
  for (const auto& [path, bytes] : files) manifest.sources[path] = sha256(bytes);
  manifest.target = request.target;
  manifest.budget = request.budget;
  // 53 bits: the number survives any JSON reader.
  manifest.seed = request.seed ? *request.seed : random_seed() >> 11;

  HONE_CHECK(make_dirs(place.parent_path()));
  HONE_TRY(const ScratchDir beside, ScratchDir::create(place.parent_path()));
  const Run run{beside.path() / "run", manifest};
  for (const auto& [path, bytes] : files) {
    const fs::path file = run.worktree() / path;
    HONE_CHECK(make_dirs(file.parent_path()));
    HONE_CHECK(write_file_atomic(file, bytes));
  }
  for (const fs::path& folder : {run.receipts(), run.scratch(), run.frontier()}) HONE_CHECK(make_dirs(folder));
  HONE_CHECK(write_file_atomic(run.frontier() / "index.json", frontier_index(run, {}).dump(2) + "\n"));
  HONE_TRY(const std::string prompt, render_prompt(task, manifest));
  HONE_CHECK(write_file_atomic(run.root / "PROMPT.md", prompt));
  HONE_CHECK(write_file_atomic(run.root / "flowverse.yaml",
                               fmt::format("# What a flow over this run hands on: the retained candidates.\n"
                                           "work_paths:\n  - worktree/candidates/{}/frontier\n",
                                           task.name)));
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  HONE_TRY(const auto for_agents, agent_files(fs::weakly_canonical(fs::absolute(place, code), code), program));
  HONE_CHECK(make_dirs(run.agents()));
  for (const auto& [name, text] : for_agents) HONE_CHECK(write_file_atomic(run.agents() / name, text));
  HONE_CHECK(write_file_atomic(run.ledger(), ""));
  const Git git(run.worktree());
  HONE_CHECK(git.init());
  HONE_CHECK(git.commit({"."}, fmt::format("Task {} and what is needed to work on it", task.name)));
  HONE_CHECK(write_manifest(manifest, run.root / "manifest.json"));
  HONE_TRY(const bool made, rename_new(run.root, place));
  if (!made) return fail(exists_error(place));
  return open_run(place);
}

}  // namespace hone
