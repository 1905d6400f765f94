#include "sandbox/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "sandbox/host_paths.h"
#include "sandbox/supervisor.h"

namespace hone {
namespace {


bool is_plain_absolute(const fs::path& path) {
  if (!path.is_absolute()) return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

// Faults of our own callers, found here rather than in the jail.
Result<> check(const JailSpec& spec, const std::vector<std::pair<int, int>>& fds) {
  if (spec.argv.empty()) return fail(ErrorKind::internal, "sandbox: no program to start");
  if (!is_plain_absolute(spec.cwd))
    return fail(ErrorKind::internal, "sandbox: the working folder {} is not an absolute path", spec.cwd);
  for (const JailMount& mount : spec.mounts) {
    if (!is_plain_absolute(mount.inside) || mount.inside == "/")
      return fail(ErrorKind::internal, "sandbox: {} is no place for a mount", mount.inside);
  }
  for (auto [here, there] : fds) {
    if (there < 3 || there > 255)
      return fail(ErrorKind::internal, "sandbox: descriptor {} cannot be handed on as {}", here, there);
  }
  return {};
}

std::uint64_t whole_seconds(double seconds) { return seconds > 0 ? static_cast<std::uint64_t>(std::ceil(seconds)) : 0; }

Result<SupervisorSpec> supervisor_spec(SandboxMode mode, const JailSpec& spec,
                                       const std::vector<std::pair<int, int>>& fds) {
  HONE_CHECK(check(spec, fds));
  SupervisorSpec out;
  jail::Order& order = out.order;
  order.isolate = mode == SandboxMode::on;
  order.compute = spec.policy == SyscallPolicy::compute;
  order.tools = spec.tools;
  order.memory_bytes = spec.limits.memory_bytes;
  order.file_bytes = spec.limits.file_bytes;
  order.tmp_bytes = spec.limits.tmp_bytes;
  order.cpu_s = whole_seconds(spec.limits.cpu_s);
  order.processes = static_cast<std::uint64_t>(std::max(spec.limits.processes, 1));
  order.open_files = static_cast<std::uint64_t>(std::max(spec.limits.open_files, 16));
  order.argv = spec.argv;
  order.env = spec.env;
  order.cwd = spec.cwd;
  std::vector<JailMount> mounts = spec.mounts;
  for (JailMount& mount : mounts) {
    std::error_code error;
    const fs::path absolute = fs::absolute(mount.host, error);
    if (!error) mount.host = absolute;
    if (!fs::exists(mount.host, error))
      return fail(ErrorKind::io, "sandbox: cannot mount {}: {}", mount.host.string(),
                  error ? error.message() : "No such file or directory");
  }
  if (order.isolate) {
    for (const JailMount& mount : mounts) order.mounts.push_back({mount.host.string(), mount.inside, mount.writable});
  } else {
    for (std::string& each : order.argv) each = to_host_paths(each, mounts);
    for (std::string& each : order.env) each = to_host_paths(each, mounts);
    order.cwd = to_host_paths(order.cwd, mounts);
  }
  out.stdin_text = spec.stdin_text;
  for (auto [here, there] : fds) {
    out.fds.push_back(here);
    order.fds.push_back(static_cast<std::uint64_t>(there));
  }
  out.output_bytes = spec.limits.output_bytes;
  out.flood_bytes = spec.limits.flood_bytes + 2 * spec.limits.output_bytes;
  out.wall_s = spec.limits.wall_s;
  out.cancel = spec.cancel;
  return out;
}

}  // namespace

struct Sandbox::Trial {
  std::once_flag once;
  SandboxStatus status;
};

Sandbox::Sandbox(SandboxMode mode, fs::path jail)
    : mode_(mode), jail_(std::move(jail)), trial_(std::make_shared<Trial>()) {}

Result<Sandbox> Sandbox::create(SandboxMode mode, const fs::path& libexec) {
  const fs::path jail = libexec / "hone-jail";
  if (::access(jail.c_str(), X_OK) != 0) {
    return fail(
        make_error(ErrorKind::environment, "{} is not there or cannot be executed", jail.string())
            .with_hint(
                "an installation is the hone binary and share/hone beside it; HONE_SHARE names another share folder"));
  }
  std::error_code error;
  const fs::path absolute = fs::absolute(jail, error);
  return Sandbox(mode, error ? jail : absolute);
}

const SandboxStatus& Sandbox::status() const {
  std::call_once(trial_->once, [this] {
    SandboxStatus& status = trial_->status;
    if (mode_ == SandboxMode::off) {
      status.available = true;
      return;
    }
    JailSpec spec;
    spec.argv = {"/trial/hone-jail", "--nothing"};
    spec.mounts = {{jail_, "/trial/hone-jail", false}};
    spec.policy = SyscallPolicy::compute;
    spec.limits.wall_s = 30;
    const auto outcome = run_jail(spec, &status);
    if (!outcome) {
      if (!status.refused.empty()) return;
      status = {false, "trial run", outcome.error().message, outcome.error().hint};
    } else if (!outcome->ok()) {
      status = {false,
                "trial run",
                fmt::format("an empty jail ended with exit code {}, signal {}", outcome->exit_code, outcome->signal),
                {}};
    } else {
      status.available = true;
    }
    if (!status.available && status.hint.empty())
      status.hint = "go on without isolation, at your own risk, with --sandbox=off";
  });
  return trial_->status;
}

Result<ProcessOutcome> Sandbox::run(const JailSpec& spec) const { return run_jail(spec, nullptr); }

Result<ProcessOutcome> Sandbox::run_jail(const JailSpec& spec, SandboxStatus* refusal) const {
  HONE_TRY(SupervisorSpec supervisor_order, supervisor_spec(mode_, spec, {}));
  supervisor_order.refusal = refusal;
  HONE_TRY(auto supervisor, Supervisor::start(jail_, std::move(supervisor_order)));
  supervisor->watch();
  return supervisor->outcome();
}

Result<std::unique_ptr<JailedProcess>> Sandbox::start(const JailSpec& spec,
                                                      const std::vector<std::pair<int, int>>& fds) const {
  HONE_TRY(SupervisorSpec supervisor_order, supervisor_spec(mode_, spec, fds));
  HONE_TRY(auto supervisor, Supervisor::start(jail_, std::move(supervisor_order)));
  supervisor->watch_in_background();
  return std::unique_ptr<JailedProcess>(std::move(supervisor));
}

}  // namespace hone
