#include <charconv>
#include <csignal>

#include "base/fs.h"
#include "cli/startup.h"
#include "cli/verb.h"
#include "inspect/compile.h"

namespace hone::cli {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

}  // namespace

const std::atomic<bool>& interrupted() { return stop; }

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop.store(true); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);   // the second one ends the process
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;                         // a closed pipe is an error of the write
  ::sigaction(SIGPIPE, &ignore, nullptr);
}

Result<int> workers_from(const char* text) {
  if (text == nullptr || *text == '\0') return 0;
  int value = 0;
  const std::string_view word = text;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value < 1 || value > 4096)
    return fail(make_error(ErrorKind::usage, "HONE_WORKERS is `{}`", word.substr(0, 64))
                    .with_hint("give a number of worker threads from 1 to 4096, or unset it"));
  return value;
}

namespace {

using MakeDevice = std::function<Result<std::unique_ptr<Device>>(const Sandbox& sandbox, const Toolchain& toolchain, const fs::path& share)>;

Result<std::unique_ptr<Environment>> open_with(const Global& global, const MakeDevice& make) {
  const SandboxMode mode = global.sandbox == "off" ? SandboxMode::off : SandboxMode::on;
  HONE_TRY(const fs::path share, share_dir());
  HONE_TRY(Sandbox sandbox, Sandbox::create(mode, share / "libexec"));
  auto owner = std::make_unique<const Sandbox>(std::move(sandbox));
  HONE_TRY(Toolchain toolchain, Toolchain::create(*owner, cache_dir() / "artifacts", share / "include"));
  HONE_TRY(std::unique_ptr<Device> device, make(*owner, toolchain, share));
  const Sandbox& stable = *owner;
  return std::unique_ptr<Environment>(new Environment{std::move(owner), stable, std::move(toolchain), std::move(device)});
}

}  // namespace

Result<std::unique_ptr<Environment>> open_environment(const Global& global, const std::string& name, int gpu) {
  return open_with(global, [&](const Sandbox& sandbox, const Toolchain& toolchain, const fs::path& share) {
    return name == "cuda" ? make_cuda_device(toolchain, share / "libexec", share, gpu)
                          : make_cpu_device(sandbox, share / "libexec", {.workers = global.workers});
  });
}

Result<std::unique_ptr<Environment>> open_target_environment(const Global& global, const std::string& architecture) {
  return open_with(global, [&](const Sandbox& sandbox, const Toolchain&, const fs::path& share) {
    return open_target(architecture, sandbox, share / "libexec", {.workers = global.workers});
  });
}

}  // namespace hone::cli
