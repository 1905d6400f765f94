#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"
#include "device/cuda/encode.h"
#include "device/cuda/session.h"

extern char** environ;

namespace hone::cuda {
namespace {

constexpr double kInfoTimeout = 60, kDeathTimeout = 20;

}  // namespace

std::vector<std::string> gpu_environment() {
  std::vector<std::string> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    if (!text.starts_with("CUDA_MODULE_LOADING=") && !text.starts_with("CUDA_LAUNCH_BLOCKING=") && !text.starts_with("CUDA_CACHE_DISABLE="))
      out.emplace_back(text);
  }
  out.emplace_back("CUDA_MODULE_LOADING=EAGER");   // a lazy load would wait for a stream that is held back
  out.emplace_back("CUDA_LAUNCH_BLOCKING=0");
  out.emplace_back("CUDA_CACHE_DISABLE=1");
  return out;
}

Result<DeviceInfo> ask_info(const fs::path& libexec, int ordinal) {
  ProcessSpec spec;
  spec.argv = {(libexec / "hone-gpu").string(), "--info", std::to_string(ordinal)};
  spec.env = gpu_environment();
  spec.timeout_s = kInfoTimeout;
  HONE_TRY(const ProcessOutcome outcome, run_process(spec));
  const auto answer = nlohmann::json::parse(outcome.out, nullptr, false);
  if (!outcome.ok() || !answer.is_object())
    return fail(make_error(ErrorKind::environment, "hone-gpu {} when it was asked about GPU {}",
                           outcome.timed_out ? "did not answer" : "failed", ordinal)
                    .with_hint("look at nvidia-smi and the kernel log").with_note(outcome.err));
  if (answer.contains("error")) {
    Error error;
    from_json(answer["error"], error);
    return fail(std::move(error));
  }
  return info_from(answer.at("ok"));
}

Result<std::unique_ptr<GpuProcess>> GpuProcess::start(const fs::path& libexec, int transfer) {
  HONE_TRY(auto ends, Channel::pair());
  const std::string program = (libexec / "hone-gpu").string();
  std::vector<std::string> variables = gpu_environment();
  std::vector<char*> env;
  for (std::string& each : variables) env.push_back(each.data());
  env.push_back(nullptr);
  std::string verb = "--serve", name = program;
  char* const argv[] = {name.data(), verb.data(), nullptr};
  // Out of the way first: a descriptor may have the number that the other gets.
  const int channel = ::fcntl(ends.second.fd(), F_DUPFD_CLOEXEC, 10), memory = ::fcntl(transfer, F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, channel, kChannelFd);
  posix_spawn_file_actions_adddup2(&actions, memory, kTransferFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);          // Ctrl-C is the judge's
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv, env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(channel);
  ::close(memory);
  if (code != 0) return fail(ErrorKind::environment, "cannot start {}: {}", program, std::strerror(code));
  return std::unique_ptr<GpuProcess>(new GpuProcess(pid, std::move(ends.first)));
}

// A process whose kernel hangs dies when the driver has taken the GPU from it; one that cannot is left to the system.
GpuProcess::~GpuProcess() {
  ::kill(pid_, SIGKILL);
  for (const double end = now_s() + kDeathTimeout; now_s() < end; ::usleep(1000)) {
    const pid_t done = ::waitpid(pid_, nullptr, WNOHANG);
    if (done == pid_ || (done < 0 && errno != EINTR)) return;
  }
}

std::optional<nlohmann::json> GpuProcess::ask(const nlohmann::json& request, double timeout_s) {
  nlohmann::json answer;
  if (!channel_.send(request) || channel_.receive(answer, timeout_s) != Channel::Got::message) return std::nullopt;
  return answer;
}

}  // namespace hone::cuda
