#include "run/worktree.h"

#include <fnmatch.h>

namespace hone {
namespace {

Result<> put_tree(std::map<std::string, std::string>& files, const std::string& prefix, const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return {};
  HONE_TRY(auto tree, read_tree(fs::canonical(folder, code)));
  for (auto& [path, bytes] : tree) files[prefix + path] = std::move(bytes);
  return {};
}

bool matches(const std::string& ban, const std::string& path) { return ::fnmatch(ban.c_str(), path.c_str(), 0) == 0; }

}  // namespace

Result<> apply_leak_bans(const Task& task, std::map<std::string, std::string>& files) {
  const std::string inside_task = "task/", seeds = "candidates/" + task.name + "/scratch/";
  // Bans are applied to the full set, so that two bans may overlap.
  std::map<std::string, std::string> kept = files;
  for (const std::string& ban : task.leak_bans) {
    std::size_t hits = 0;
    for (const auto& [path, bytes] : files) {
      bool banned = matches(ban, path);
      if (path.starts_with(inside_task))
        banned = banned || matches(ban, path.substr(inside_task.size())) ||
                 matches(ban, "tasks/" + task.name + "/" + path.substr(inside_task.size()));
      if (path.starts_with(seeds))
        banned = banned || matches(ban, "kernels/" + task.name + "/" + path.substr(seeds.size()));
      if (!banned) continue;
      ++hits;
      kept.erase(path);
    }
    if (hits == 0)
      return fail(make_error(ErrorKind::contract, "leak ban \"{}\" matches nothing", ban)
                      .at({(task.folder / "task.yaml").string()})
                      .with_hint("a ban that matches nothing hides nothing: correct its pattern or remove it"));
  }
  files = std::move(kept);
  return {};
}

Result<std::map<std::string, std::string>> worktree_files(const Task& task) {
  HONE_TRY(const fs::path share, share_dir());
  std::map<std::string, std::string> files;
  for (const auto& [path, bytes] : task.files) files["task/" + path] = bytes;
  HONE_CHECK(put_tree(files, "include/hone/", share / "include/hone"));
  HONE_TRY(files["docs/candidate.md"], read_file(share / "docs/candidate.md"));
  HONE_CHECK(put_tree(files, "docs/skills/", share / "prompts/skills"));
  HONE_CHECK(put_tree(files, "candidates/" + task.name + "/scratch/", share / "kernels" / task.name));
  HONE_CHECK(apply_leak_bans(task, files));
  return files;
}

}  // namespace hone
