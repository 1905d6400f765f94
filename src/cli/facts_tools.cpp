#include <array>
#include <cctype>
#include <fstream>

#include "base/fs.h"
#include "base/process.h"
#include "cli/facts.h"
#include "toolchain/toolchain.h"

namespace hone::cli {
namespace {

Fact compiler(const std::vector<CompilerInfo>& found, const std::string& name, bool needed, const std::string& cost) {
  for (const CompilerInfo& each : found)
    if (each.name == name) return {.id = name, .value = fmt::format("{} ({})", each.version, each.path), .needed = needed};
  return {.id = name, .state = Fact::State::missing, .value = "not found", .cost = cost,
          .mend = fmt::format("apt-get install {}", name == "clang++" ? "clang" : name), .needed = needed};
}

Fact isolation(const Sandbox* sandbox) {
  if (sandbox == nullptr)
    return {.id = "sandbox", .state = Fact::State::missing, .value = "hone-jail not found", .cost = "candidate code cannot run",
            .mend = "copy share/hone with the binary, or set HONE_SHARE", .needed = true};
  if (sandbox->mode() == SandboxMode::off)
    return {.id = "sandbox", .state = Fact::State::note, .value = "off (--sandbox=off)",
            .cost = "candidate code runs with your rights; every receipt says so", .mend = "leave --sandbox=off away", .needed = true};
  const SandboxStatus& status = sandbox->status();
  if (status.available)
    return {.id = "sandbox", .value = "namespaces, seccomp and limits work", .needed = true};
  std::string value = fmt::format("{} refused", status.refused);
  if (!status.reason.empty()) value += ": " + status.reason;
  return {.id = "sandbox", .state = Fact::State::missing, .value = value, .cost = "candidate code does not run (exit 3)",
          .mend = status.hint.empty() ? "allow it, or go on at your own risk with --sandbox=off" : status.hint, .needed = true};
}

Fact program(const std::string& name, const std::string& cost, const std::string& mend) {
  const std::string path = find_program(name);
  if (path.empty()) return {.id = name, .state = Fact::State::missing, .value = "not found", .cost = cost, .mend = mend};
  const std::string version = version_of(path);
  return {.id = name, .value = version.empty() ? path : fmt::format("{} ({})", version, path)};
}

// A header in the compilers' usual folders.
fs::path header(const std::string& name) {
  std::error_code error;
  for (const char* folder : {"/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu", "/usr/local/include"})
    if (fs::exists(fs::path(folder) / name, error)) return fs::path(folder) / name;
  return {};
}

std::string macro_value(const fs::path& path, const std::string& macro) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("#define " + macro + " ");
    if (at != std::string::npos) return line.substr(line.find_first_not_of(' ', at + 9 + macro.size()));
  }
  return {};
}

Fact onednn() {
  const fs::path found = header("oneapi/dnnl/dnnl.h");
  if (found.empty())
    return {.id = "onednn", .state = Fact::State::missing, .value = "no development files",
            .cost = "the GEMM tasks lose their oneDNN baseline and cannot be judged", .mend = "apt-get install libdnnl-dev"};
  const fs::path version = found.parent_path() / "dnnl_version.h";
  return {.id = "onednn", .value = fmt::format("{}.{}.{}", macro_value(version, "DNNL_VERSION_MAJOR"), macro_value(version, "DNNL_VERSION_MINOR"),
                                               macro_value(version, "DNNL_VERSION_PATCH"))};
}

Fact openblas() {
  fs::path found = header("openblas_config.h");
  for (const char* flavour : {"openblas-openmp", "openblas-pthread", "openblas-serial", "openblas"})
    if (found.empty()) found = header(std::string(flavour) + "/openblas_config.h");
  if (found.empty() || header("cblas.h").empty())
    return {.id = "openblas", .state = Fact::State::missing, .value = "no development files",
            .cost = "the GEMM tasks lose their OpenBLAS baseline and cannot be judged", .mend = "apt-get install libopenblas-openmp-dev"};
  std::string version = macro_value(found, "OPENBLAS_VERSION");
  std::erase(version, '"');
  while (!version.empty() && version.back() == ' ') version.pop_back();
  if (const std::size_t digit = version.find_first_of("0123456789"); digit != std::string::npos) version.erase(0, digit);
  return {.id = "openblas", .value = version};
}

Fact installation() {
  const auto share = share_dir();
  if (share) return {.id = "share", .value = share->string(), .needed = true};
  return {.id = "share", .state = Fact::State::missing, .value = share.error().message, .cost = "no tasks, headers or helper programs",
          .mend = share.error().hint.empty() ? "copy share/hone with the binary, or set HONE_SHARE" : share.error().hint, .needed = true};
}

}  // namespace

std::string_view name_of(Fact::State state) {
  return std::array<std::string_view, 3>{"ok", "note", "missing"}[static_cast<std::size_t>(state)];
}

std::string version_of(const std::string& program) {
  ProcessSpec spec;
  spec.argv = {program, "--version"};
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  spec.timeout_s = 10;
  spec.stdout_limit = 8192;
  const auto outcome = run_process(spec);
  if (!outcome || !outcome->ok()) return {};
  // digits and dots, with at least one dot
  const std::string& text = outcome->out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) continue;
    std::size_t end = i;
    while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) ++end;
    const std::string word = text.substr(i, end - i);
    if (word.find('.') != std::string::npos && word.back() != '.') return word;
    i = end;
  }
  return {};
}

FactGroup tool_facts(const Sandbox* sandbox) {
  const std::vector<CompilerInfo> compilers = Toolchain::compilers();
  return {"tools",
          {installation(), isolation(sandbox),
           compiler(compilers, "g++", true, "candidates and tasks cannot be compiled"),
           compiler(compilers, "clang++", false, "candidates that ask for clang++ cannot be compiled"),
           program("git", "no runs: `hone init` makes a git worktree", "apt-get install git"),
           program("addr2line", "a crash is reported without its source line", "apt-get install binutils"), onednn(), openblas()}};
}

}  // namespace hone::cli
