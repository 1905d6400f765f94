#include "toolchain/compilers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <sstream>

#include "base/hash.h"
#include "base/process.h"

namespace hone {
namespace {

// Fixed folders before PATH: a wrapper such as ccache in front of PATH is not the compiler.
std::string path_of(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/"})
    if (const std::string path = folder + name; ::access(path.c_str(), X_OK) == 0) return path;
  return "";
}

}  // namespace

Result<Compiler> find_compiler(const std::string& name) {
  if (name != "g++" && name != "clang++")
    return fail(make_error(ErrorKind::no_compiler, "{} is not a compiler that Hone knows", name)
                    .with_hint("use g++ or clang++"));
  const std::string path = path_of(name);
  struct stat info = {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0)
    return fail(
        make_error(ErrorKind::no_compiler, "{} was not found in /usr/bin or /usr/local/bin", name)
            .with_hint(name == "g++" ? "install it: apt-get install g++" : "install it: apt-get install clang"));
  const std::string stamp =
      fmt::format("{}\n{}\n{}.{:09}", path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);

  static std::mutex mutex;
  static std::map<std::string, Compiler> known;   // by stamp
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(stamp); it != known.end()) return it->second;
  ProcessSpec spec;
  spec.argv = {path, "--version"};
  spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  spec.timeout_s = 20;
  HONE_TRY(const ProcessOutcome outcome, run_process(spec));
  const std::string line = outcome.out.substr(0, outcome.out.find('\n'));
  // "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "Debian clang version 14.0.6"
  std::istringstream words(line);
  std::string version;
  for (std::string word; words >> word;)
    if (word[0] >= '0' && word[0] <= '9') version = word;
  if (!outcome.ok() || version.empty())
    return fail(make_error(ErrorKind::no_compiler, "{} --version failed", path).with_note(outcome.err.substr(0, 400)));
  return known[stamp] = Compiler{{name, path, version}, line + "\n" + stamp};
}

const std::string& native_target() {
  static const std::string target = [] {
    const auto cpuinfo = read_file("/proc/cpuinfo", std::size_t{64} << 20);
    FieldHash hash;
    // The first processor's block. Its clock moves from read to read and is left out.
    std::istringstream lines(cpuinfo ? *cpuinfo : std::string());
    for (std::string line; std::getline(lines, line) && !line.empty();)
      for (const char* key :
           {"vendor_id", "cpu family", "model", "stepping", "cache size", "flags", "Features", "CPU "})
        if (line.starts_with(key)) {
          hash.add(line);
          break;
        }
    return hash.hex();
  }();
  return target;
}

std::vector<CompilerInfo> Toolchain::compilers() {
  std::vector<CompilerInfo> out;
  for (const char* name : {"g++", "clang++"})
    if (auto compiler = find_compiler(name)) out.push_back(compiler->info);
  return out;
}

}  // namespace hone
