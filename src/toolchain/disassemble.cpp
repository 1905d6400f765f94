#include "toolchain/disassemble.h"

#include <unistd.h>

#include <algorithm>

#include "toolchain/compilers.h"

namespace hone {
namespace {

constexpr std::size_t kLongestListing = std::size_t{32} << 20;
constexpr double kSeconds = 120;

struct Tool {
  std::string name;
  fs::path path;                     // links resolved
  std::vector<std::string> flags;
  bool lines;
};

Result<Tool> cuda_tool() {
  for (Tool tool : {Tool{"nvdisasm", {}, {"-c", "-g"}, true}, Tool{"cuobjdump", {}, {"-sass"}, false}}) {
    tool.path = find_cuda_program(tool.name);
    if (!tool.path.empty()) return tool;
  }
  return fail(make_error(ErrorKind::environment, "no nvdisasm and no cuobjdump").with_hint("hone toolchain add cuda"));
}

Result<Tool> host_tool() {
  const fs::path path = "/usr/bin/objdump";
  if (::access(path.c_str(), X_OK) == 0) return Tool{"objdump", path, {"-d", "-l", "--no-show-raw-insn", "-w"}, true};
  return fail(make_error(ErrorKind::environment, "no objdump").with_hint("apt-get install binutils"));
}

// The first word of digits and dots, in which at least one dot is.
std::string version_in(const std::string& text) {
  for (std::size_t at = text.find_first_of("0123456789"); at != std::string::npos; at = text.find_first_of("0123456789", at)) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789.", at), text.size());
    if (text.substr(at, end - at).find('.') != std::string::npos) return text.substr(at, end - at);
    at = end;
  }
  return {};
}

}  // namespace

Result<Disassembly> disassemble(const Artifact& artifact, const Sandbox& sandbox) {
  HONE_TRY(const Tool tool, artifact.ptx.empty() ? host_tool() : cuda_tool());
  const bool jailed = sandbox.mode() == SandboxMode::on;
  const std::string file = jailed ? "/hone/artifact" : artifact.path.string();
  JailSpec jail;
  std::string program = tool.path.string();
  if (jailed) jail.mounts = {{artifact.path, file, false}};
  if (jailed && !program.starts_with("/usr/")) {
    jail.mounts.push_back({tool.path.parent_path(), "/hone/tools", false});
    program = "/hone/tools/" + tool.path.filename().string();
  }
  jail.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp", "HOME=/tmp"};
  jail.cwd = "/tmp";
  jail.limits.cpu_s = jail.limits.wall_s = kSeconds;
  jail.argv = {program, "--version"};
  HONE_TRY(const ProcessOutcome version, sandbox.run(jail));
  jail.argv = {program};
  jail.argv.insert(jail.argv.end(), tool.flags.begin(), tool.flags.end());
  jail.argv.push_back(file);
  jail.limits.output_bytes = kLongestListing;
  HONE_TRY(ProcessOutcome outcome, sandbox.run(jail));
  if (!outcome.ok() && outcome.out_dropped == 0)
    return fail(make_error(ErrorKind::environment, "{} ended with {} {}", tool.path.string(), outcome.signal != 0 ? "signal" : "exit code",
                           outcome.signal != 0 ? outcome.signal : outcome.exit_code)
                    .with_note(outcome.err.substr(0, 400)));
  Disassembly out{fmt::format("{} {}", tool.name, version_in(version.out)), std::move(outcome.out), outcome.out_dropped, tool.lines};
  if (out.dropped_bytes > 0) out.text.resize(out.text.rfind('\n') + 1);
  return out;
}

}  // namespace hone
