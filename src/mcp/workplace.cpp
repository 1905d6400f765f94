#include "mcp/workplace.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace hone::mcp {
namespace {

constexpr std::size_t kKept = 60;

void drop_oldest(const fs::path& folder) {
  std::error_code code;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (auto each = fs::directory_iterator(folder, code); !code && each != fs::directory_iterator(); each.increment(code))
    if (each->is_regular_file(code) && each->path().filename() != ".gitignore") files.emplace_back(each->last_write_time(code), each->path());
  if (files.size() <= kKept) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kKept < files.size(); ++i) fs::remove(files[i].second, code);
}

}  // namespace

Result<std::string> Shelf::put(const std::string& name, const std::string& ending, const std::string& text) const {
  static std::atomic<int> count{0};
  HONE_CHECK(make_dirs(folder_));
  std::error_code code;
  if (!fs::exists(folder_ / ".gitignore", code)) HONE_CHECK(write_file_atomic(folder_ / ".gitignore", "*\n"));
  const fs::path file = folder_ / fmt::format("{}-{}-{}.{}", name, ::getpid(), ++count, ending);
  HONE_CHECK(write_file_atomic(file, text));
  drop_oldest(folder_);
  return fs::absolute(file, code).string();
}

bool Workplace::has(const std::string& verb) const { return std::find(verbs.begin(), verbs.end(), verb) != verbs.end(); }

std::vector<std::string> Workplace::line(const std::string& verb, const nlohmann::json& arguments) const {
  std::vector<std::string> out{verb};
  if (run) out.insert(out.end(), {"--run", run->root.string()});
  else if (const std::string task = arguments.value("task", ""); !task.empty()) out.insert(out.end(), {"--task", task});
  return out;
}

void Workplace::keep(nlohmann::json& facts, const std::string& name, const nlohmann::json& whole) const {
  const auto path = shelf.put(name, "json", whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  facts["full"] = path ? nlohmann::json(*path) : nlohmann::json();
}

}  // namespace hone::mcp
