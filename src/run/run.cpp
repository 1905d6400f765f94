#include "run/run.h"

namespace hone {
namespace {

bool is_run(const fs::path& folder) {
  std::error_code code;
  return fs::is_regular_file(folder / "manifest.json", code) && fs::is_directory(folder / "worktree", code);
}

std::optional<fs::path> enclosing_run(const fs::path& from) {
  std::error_code code;
  fs::path folder = fs::weakly_canonical(fs::absolute(from, code), code);
  for (;;) {
    if (is_run(folder)) return folder;
    if (!folder.has_relative_path()) return std::nullopt;
    folder = folder.parent_path();
  }
}

}  // namespace

Result<Run> open_run(const fs::path& root) {
  std::error_code code;
  const fs::path folder = fs::weakly_canonical(fs::absolute(root, code), code);
  if (fs::is_regular_file(folder / "manifest.json", code) && !fs::is_directory(folder / "worktree", code))
    return fail(make_error(ErrorKind::contract, "this run has lost its worktree")
                    .at({(folder / "worktree").string()})
                    .with_hint("its receipts hold every judged source: restore the folder, or make a new run with `hone init` and "
                               "add them by `hone frontier add --receipt`"));
  if (!is_run(folder))
    return fail(make_error(ErrorKind::not_found, "{} is not a run directory", root.string())
                    .at({root.string()})
                    .with_hint("`hone init --task T` makes one and prints its path"));
  HONE_TRY(Manifest manifest, read_manifest(folder / "manifest.json"));
  return Run{folder, std::move(manifest)};
}

Result<Run> find_run(const std::optional<fs::path>& from) {
  std::error_code code;
  const fs::path start = from ? *from : fs::current_path(code);
  if (from && !fs::exists(start, code)) {
    // A bare name means a run in the default place.
    const fs::path named = data_dir() / "runs" / start;
    if (!start.has_parent_path() && is_run(named)) return open_run(named);
    return open_run(start);
  }
  if (const auto root = enclosing_run(start)) return open_run(*root);
  if (from) return open_run(start);
  return fail(make_error(ErrorKind::not_found, "no run here")
                  .with_hint("say --run DIR, or change into a run directory; `hone init --task T` makes one"));
}

Result<std::optional<Run>> find_run_here() {
  std::error_code code;
  const auto root = enclosing_run(fs::current_path(code));
  if (!root) return std::optional<Run>();
  HONE_TRY(Run run, open_run(*root));
  return std::optional<Run>(std::move(run));
}

Result<Task> task_of(const Run& run) {
  HONE_TRY(Task task, load_task(run.manifest.task_source));
  if (task.sha256 != run.manifest.task_sha256)
    return fail(make_error(ErrorKind::contract, "task {} has changed since this run was made", run.manifest.task)
                    .at({(task.folder / "task.yaml").string()})
                    .with_hint("measurements of two contracts cannot be compared: make a new run with `hone init`"));
  return task;
}

fs::path candidate_path(const Run& run, const std::string& name) {
  std::error_code code;
  if (fs::path(name).has_parent_path() || fs::exists(name, code)) return name;
  for (const fs::path& folder : {run.scratch() / name, run.frontier() / name})
    if (fs::is_directory(folder, code)) return folder;
  return name;
}

}  // namespace hone
