#include "server/device_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/fs.h"

namespace hone::server {
namespace {

constexpr int kChannelFd = 3;
constexpr double kSweep_s = 5;

std::mutex known_mutex;
std::set<pid_t> known;                     // device processes that live: not orphans

std::vector<pid_t> children() {
  std::vector<pid_t> out;
  std::error_code code;
  for (const auto& task : fs::directory_iterator("/proc/self/task", code)) {
    std::ifstream file(task.path() / "children");
    for (pid_t pid; file >> pid;) out.push_back(pid);
  }
  return out;
}

// Kills and reaps what has been left to this process. Nothing else here forks.
void sweep() {
  for (const double end = now_s() + kSweep_s; now_s() < end;) {
    bool any = false;
    for (const pid_t pid : children()) {
      const std::lock_guard lock(known_mutex);
      if (known.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);
    }
    if (!any) return;
    ::usleep(1000);
  }
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

Result<std::unique_ptr<DeviceProcess>> DeviceProcess::start(const std::vector<std::string>& argv, double ready_s) {
  HONE_TRY(auto ends, Channel::pair());
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  const int theirs = ends.second.fd();
  pid_t pid = 0;
  {
    const std::lock_guard lock(known_mutex);
    pid = ::fork();
    if (pid > 0) known.insert(pid);
  }
  if (pid < 0) return fail(ErrorKind::environment, "cannot start a device process: {}", std::strerror(errno));
  if (pid == 0) {
    // Only calls that are safe between fork and exec.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != parent) ::_exit(1);
    ::setpgid(0, 0);                       // Ctrl-C is the service's
    if (theirs == kChannelFd) ::fcntl(kChannelFd, F_SETFD, 0);
    else ::dup2(theirs, kChannelFd);
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, 0);
    ::dup2(2, 1);                          // nothing of it belongs on the service's standard output
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  std::unique_ptr<DeviceProcess> out(new DeviceProcess(pid, std::move(ends.first)));
  { const Channel closed_here = std::move(ends.second); }
  nlohmann::json message;
  for (const double end = now_s() + ready_s;;) {
    const auto got = out->receive(message, std::max(0.0, end - now_s()));
    if (got == Channel::Got::nothing)
      return fail(ErrorKind::device, "the device process was not ready after {:.0f} s", ready_s);
    if (got == Channel::Got::closed) return fail(ErrorKind::device, "the device process ended before it was ready");
    if (message.contains("fatal")) {
      Error error;
      from_json(message["fatal"], error);
      return fail(std::move(error));
    }
    if (!message.contains("ready")) continue;
    out->device_ = message["ready"];
    return out;
  }
}

DeviceProcess::~DeviceProcess() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  {
    const std::lock_guard lock(known_mutex);
    known.erase(pid_);
  }
  sweep();
}

}  // namespace hone::server
