#include "toolchain/compilers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
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

// Path, size and time of a file; empty when it is not there.
std::string stamp_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{}\n{}\n{}.{:09}\n", path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// What a compiler says of itself, remembered by its stamp.
Result<std::string> version_text(const std::string& path, const std::string& stamp) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(stamp); it != known.end()) return it->second;
  ProcessSpec spec;
  spec.argv = {path, "--version"};
  spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  spec.timeout_s = 20;
  HONE_TRY(const ProcessOutcome outcome, run_process(spec));
  if (!outcome.ok() || outcome.out.empty())
    return fail(make_error(ErrorKind::no_compiler, "{} --version failed", path).with_note(outcome.err.substr(0, 400)));
  return known[stamp] = outcome.out;
}

Result<Compiler> find_host_compiler(const std::string& name) {
  const std::string path = path_of(name), stamp = path.empty() ? "" : stamp_of(path);
  if (stamp.empty())
    return fail(
        make_error(ErrorKind::no_compiler, "{} was not found in /usr/bin or /usr/local/bin", name)
            .with_hint(name == "g++" ? "install it: apt-get install g++" : "install it: apt-get install clang"));
  HONE_TRY(const std::string text, version_text(path, stamp));
  const std::string line = text.substr(0, text.find('\n'));
  // "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "Debian clang version 14.0.6"
  std::istringstream words(line);
  std::string version;
  for (std::string word; words >> word;)
    if (word[0] >= '0' && word[0] <= '9') version = word;
  if (version.empty()) return fail(make_error(ErrorKind::no_compiler, "{} --version says no version", path));
  return Compiler{{name, path, version, "", "system"}, line + "\n" + stamp};
}

struct Toolkit {
  fs::path root;
  std::string source;
};

bool holds_nvcc(const fs::path& root) { return ::access((root / "bin/nvcc").c_str(), X_OK) == 0; }

// The one that counts first; each root once.
std::vector<Toolkit> toolkits() {
  std::vector<Toolkit> out;
  const auto add = [&](const fs::path& root, const char* source) {
    std::error_code code;
    fs::path real = fs::canonical(root, code);
    if (code || !holds_nvcc(real)) return;
    for (const Toolkit& each : out)
      if (each.root == real) return;
    out.push_back({std::move(real), source});
  };
  if (const char* root = std::getenv("HONE_CUDA"); root != nullptr && *root != '\0') add(root, "HONE_CUDA");
  add("/usr/local/cuda", "/usr/local/cuda");
  if (const std::string path = find_program("nvcc"); !path.empty()) {
    std::error_code code;
    add(fs::canonical(path, code).parent_path().parent_path(), "PATH");
  }
  add(toolchains_dir() / "cuda", "hone toolchain add cuda");
  return out;
}

Result<Toolkit> find_toolkit() {
  if (const char* root = std::getenv("HONE_CUDA"); root != nullptr && *root != '\0' && !holds_nvcc(root))
    return fail(make_error(ErrorKind::no_compiler, "HONE_CUDA is {}, where no bin/nvcc is", root)
                    .with_hint("name the root of a CUDA toolkit, or unset HONE_CUDA"));
  if (std::vector<Toolkit> found = toolkits(); !found.empty()) return std::move(found.front());
  return fail(make_error(ErrorKind::no_compiler, "nvcc was not found: HONE_CUDA is unset, and there is none in /usr/local/cuda, PATH or Hone's own folder")
                  .with_hint("`hone toolchain add cuda` fetches one (compiling needs no GPU); HONE_CUDA can name the root of another"));
}

Result<Compiler> nvcc_of(const Toolkit& toolkit) {
  HONE_TRY(const Compiler host, find_host_compiler("g++"));   // nvcc preprocesses with it
  const std::string root = toolkit.root.string(), path = root + "/bin/nvcc";
  const std::string stamp = stamp_of(path);
  HONE_TRY(const std::string text, version_text(path, stamp));
  // "Cuda compilation tools, release 13.0, V13.0.88"
  const std::size_t at = text.find(", V");
  const std::string version = at == std::string::npos ? "" : text.substr(at + 3, text.find_first_not_of("0123456789.", at + 3) - at - 3);
  if (version.empty()) return fail(make_error(ErrorKind::no_compiler, "{} --version says no version", path));
  Compiler out{{"nvcc", path, version, root, toolkit.source}, text + stamp + stamp_of(root + "/bin/ptxas") + stamp_of(root + "/nvvm/bin/cicc") + host.identity};
  for (const char* folder : {"/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"})
    out.static_runtime = out.static_runtime || ::access((root + folder + "/libcudart_static.a").c_str(), R_OK) == 0;
  return out;
}

Result<Compiler> find_nvcc() {
  HONE_TRY(const Toolkit toolkit, find_toolkit());
  return nvcc_of(toolkit);
}

}  // namespace

Result<Compiler> find_compiler(const std::string& name) {
  if (name == "nvcc") return find_nvcc();
  if (name == "g++" || name == "clang++") return find_host_compiler(name);
  return fail(make_error(ErrorKind::no_compiler, "{} is not a compiler that Hone knows", name)
                  .with_hint("use g++, clang++ or nvcc"));
}

fs::path find_cuda_program(const std::string& name) {
  std::error_code code;
  for (const Toolkit& toolkit : toolkits())
    if (const fs::path path = toolkit.root / "bin" / name; ::access(path.c_str(), X_OK) == 0) return fs::canonical(path, code);
  const std::string path = find_program(name);
  return path.empty() ? fs::path() : fs::canonical(path, code);
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

Result<CompilerInfo> Toolchain::compiler(const std::string& name) {
  HONE_TRY(Compiler found, find_compiler(name));
  return std::move(found.info);
}

std::vector<CompilerInfo> Toolchain::cuda_compilers() {
  std::vector<CompilerInfo> out;
  for (const Toolkit& toolkit : toolkits())
    if (auto compiler = nvcc_of(toolkit)) out.push_back(std::move(compiler->info));
  return out;
}

fs::path toolchains_dir() { return data_dir() / "toolchains"; }

std::vector<CompilerInfo> Toolchain::compilers() {
  std::vector<CompilerInfo> out;
  for (const char* name : {"g++", "clang++"})
    if (auto compiler = find_compiler(name)) out.push_back(compiler->info);
  return out;
}

}  // namespace hone
