#include "profile/tool.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/process.h"
#include "toolchain/compilers.h"

namespace hone {
namespace {

bool can_run(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && ::access(path.c_str(), X_OK) == 0;
}

// Folders of `parent` whose names begin so, the newest version first.
std::vector<fs::path> versions_in(const fs::path& parent, const std::string& begin) {
  std::vector<fs::path> out;
  std::error_code code;
  for (const auto& each : fs::directory_iterator(parent, code))
    if (each.path().filename().string().starts_with(begin)) out.push_back(each.path());
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
  return out;
}

}  // namespace

Result<fs::path> find_vendor_tool(const std::string& name) {
  std::vector<fs::path> places = {find_program(name)};
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') places.push_back(fs::path(home) / "bin" / name);
  places.push_back(find_cuda_program(name));
  for (const fs::path& toolkit : versions_in("/usr/local", "cuda")) {
    places.push_back(toolkit / "bin" / name);
    places.push_back(toolkit / "compute-sanitizer" / name);
  }
  for (const fs::path& version : versions_in("/opt/nvidia/nsight-compute", "")) places.push_back(version / name);
  const auto found = std::find_if(places.begin(), places.end(), [](const fs::path& path) { return !path.empty() && can_run(path); });
  if (found != places.end()) return *found;
  const bool profiler = name == "ncu";
  return fail(make_error(ErrorKind::environment, "there is no {} here: it is not in PATH, CUDA_HOME or a folder of NVIDIA's packages", name)
                  .with_hint(profiler ? "install Nsight Compute, or ask an evaluation service that has it (--remote)"
                                      : "install the CUDA toolkit, or ask an evaluation service that has it (--remote)"));
}

}  // namespace hone
