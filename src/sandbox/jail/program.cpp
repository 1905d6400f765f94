// The program's own process: descriptors, limits, filter, exec.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sandbox/jail/jail.h"

namespace hone::jail {
namespace {

void limit(int channel, int resource, std::uint64_t soft, std::uint64_t hard) {
  rlimit now = {};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlimit wanted = {std::min<rlim_t>(soft, now.rlim_max), std::min<rlim_t>(hard, now.rlim_max)};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &wanted) != 0)
    fail(channel, Fault::refused, "resource limits", "setrlimit " + std::to_string(resource), errno);
}

void limit(int channel, int resource, std::uint64_t value) {
  if (value > 0) limit(channel, resource, value, value);
}

void set_limits(const Order& order, int channel) {
  constexpr std::uint64_t kMiB = 1u << 20;
  limit(channel, RLIMIT_CORE, 0, 0);
  limit(channel, RLIMIT_STACK, 8 * kMiB, 64 * kMiB);   // g++ raises its own to the hard limit
  limit(channel, RLIMIT_AS, order.memory_bytes);
  limit(channel, RLIMIT_FSIZE, order.file_bytes);
  limit(channel, RLIMIT_NOFILE, order.open_files);
  if (order.cpu_s > 0) limit(channel, RLIMIT_CPU, order.cpu_s, order.cpu_s + 1);
  // Without a user namespace the limit would count all of the person's processes. Inside one, the
  // keeper counts as well.
  if (order.isolate) limit(channel, RLIMIT_NPROC, order.processes > 0 ? order.processes + 1 : 0);
}

// Puts kFirstFd + i at order.fds[i], whatever the overlaps; returns `channel`'s new number. Nothing
// else above 2 stays open past exec.
int place_descriptors(const Order& order, int channel) {
  std::uint64_t top = kFirstFd + order.fds.size();
  for (std::uint64_t fd : order.fds) top = std::max(top, fd + 1);
  const int base = static_cast<int>(top);
  const int new_channel = ::fcntl(channel, F_DUPFD_CLOEXEC, base);
  const int new_status = ::fcntl(kStatusFd, F_DUPFD_CLOEXEC, base);
  if (new_channel < 0 || new_status < 0) fail(channel, Fault::program, "descriptors", "cannot move descriptors", errno);
  std::vector<int> sources;
  for (std::size_t i = 0; i < order.fds.size(); ++i) {
    sources.push_back(::fcntl(kFirstFd + static_cast<int>(i), F_DUPFD_CLOEXEC, base));
    if (sources.back() < 0)
      fail(new_channel, Fault::program, "descriptors", "a descriptor to hand on is not open", errno);
  }
  Message hello;
  send(new_status, hello);
  ::syscall(SYS_close_range, 3u, static_cast<unsigned>(base - 1), 0u);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (::dup2(sources[i], static_cast<int>(order.fds[i])) < 0)
      fail(new_channel, Fault::program, "descriptors", "cannot place a descriptor", errno);
  constexpr unsigned kCloseOnExec = 1u << 2;   // CLOSE_RANGE_CLOEXEC
  ::syscall(SYS_close_range, static_cast<unsigned>(base), ~0u, kCloseOnExec);
  return new_channel;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& each : strings) out.push_back(const_cast<char*>(each.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become(const Order& order, int channel) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::setsid();
  ::umask(022);
  channel = place_descriptors(order, channel);
  if (::chdir(order.cwd.c_str()) != 0)
    fail(channel, Fault::program, "working folder", "cannot enter " + order.cwd, errno);
  set_limits(order, channel);
  const std::vector<char*> argv = pointers(order.argv), env = pointers(order.env);
  std::uint64_t keys[3] = {};
  if (order.isolate) {
    if (::getrandom(keys, sizeof keys, 0) != sizeof keys)
      fail(channel, Fault::refused, "random numbers", "getrandom", errno);
    const int error = load_filter(order.compute, ::getpid(), keys);
    if (error != 0) fail(channel, Fault::refused, "seccomp", "cannot install the filter", error);
  }
  ::syscall(SYS_execve, argv[0], argv.data(), env.data(), keys[0], keys[1], keys[2]);
  fail(channel, Fault::program, "program", "cannot start " + order.argv[0], errno);
}

}  // namespace

pid_t start_program(const Order& order, int monitor) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) fail(kStatusFd, Fault::refused, "pipes", "cannot make one", errno);
  const pid_t program = ::fork();
  if (program < 0) fail(kStatusFd, Fault::refused, "processes", "cannot start one", errno);
  if (program == 0) {
    ::close(report[0]);
    ::close(kLifelineFd);
    if (monitor >= 0) ::close(monitor);
    become(order, report[1]);
  }
  ::close(report[1]);
  ::syscall(SYS_close_range, 0u, 2u, 0u);
  for (std::size_t i = 0; i < order.fds.size(); ++i) ::close(kFirstFd + static_cast<int>(i));
  Message message;
  ssize_t n;
  do n = ::read(report[0], &message, sizeof message);
  while (n < 0 && errno == EINTR);
  ::close(report[0]);
  if (n != sizeof message) {   // closed by exec, or by death before it, which the keeper will report
    message = {};
    message.kind = Message::started;
  }
  send(kStatusFd, message);
  if (message.kind == Message::failed) ::_exit(1);
  return program;
}

}  // namespace hone::jail
