#include "run/worktree.h"

#include <fnmatch.h>

#include <algorithm>

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

namespace {

// Every file that agents may be shown, and where it comes from.
struct Shown {
  std::map<std::string, std::string> files;
  std::vector<std::pair<std::string, fs::path>> folders;   // by the beginning of the path in the worktree, longest first
};

Result<Shown> everything(const Task& task) {
  HONE_TRY(const fs::path share, share_dir());
  Shown shown;
  shown.folders = {{"candidates/" + task.name + "/scratch/", share / "kernels" / task.name},
                   {"include/hone/", share / "include/hone"},
                   {"docs/skills/", share / "prompts/skills"},
                   {"docs/", share / "docs"},
                   {"task/", task.folder}};
  for (const auto& [path, bytes] : task.files) shown.files["task/" + path] = bytes;
  HONE_TRY(shown.files["docs/candidate.md"], read_file(share / "docs/candidate.md"));
  for (std::size_t i = 0; i < 3; ++i) HONE_CHECK(put_tree(shown.files, shown.folders[i].first, shown.folders[i].second));
  return shown;
}

}  // namespace

Result<std::map<std::string, std::string>> worktree_files(const Task& task) {
  HONE_TRY(Shown shown, everything(task));
  HONE_CHECK(apply_leak_bans(task, shown.files));
  return std::move(shown.files);
}

Result<std::vector<fs::path>> banned_files(const Task& task) {
  HONE_TRY(const Shown shown, everything(task));
  HONE_TRY(const auto kept, worktree_files(task));
  std::vector<fs::path> banned;
  for (const auto& [path, bytes] : shown.files) {
    if (kept.count(path) != 0) continue;
    const auto found = std::find_if(shown.folders.begin(), shown.folders.end(), [&key = path](const auto& each) { return key.starts_with(each.first); });
    if (found != shown.folders.end()) banned.push_back(found->second / path.substr(found->first.size()));
  }
  return banned;
}

}  // namespace hone
