// hone-jail: see jail.h for the three processes and wire.h for how Hone talks to it. It is built
// without sanitizers and linked statically: it starts in a millisecond and needs no libraries.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sandbox/jail/jail.h"

namespace hone::jail {

void send(int channel, const Message& message) {
  ssize_t n;
  do n = ::write(channel, &message, sizeof message);
  while (n < 0 && errno == EINTR);
}

void fail(int channel, Fault fault, const char* facility, const std::string& detail, int error) {
  Message message;
  message.kind = Message::failed;
  message.fault = fault;
  message.error = error;
  put_text(message.facility, sizeof message.facility, facility);
  put_text(message.detail, sizeof message.detail, detail);
  send(channel, message);
  ::_exit(1);
}

namespace {

std::string read_all(int fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

std::string read_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text = read_all(fd);
  ::close(fd);
  return text;
}

bool write_path(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  ::close(fd);
  errno = error;
  return done;
}

// The ids of this user namespace, each mapped to itself; `has_jail_id` tells whether the jail's is among them.
std::string identity_map(const char* path, bool& has_jail_id) {
  const std::string map = read_path(path);
  std::string identity;
  has_jail_id = false;
  const char* at = map.c_str();
  unsigned long inside = 0, outside = 0, count = 0;
  for (int used = 0; std::sscanf(at, "%lu %lu %lu%n", &inside, &outside, &count, &used) == 3; at += used) {
    identity += std::to_string(inside) + " " + std::to_string(inside) + " " + std::to_string(count) + "\n";
    if (inside <= kJailId && kJailId - inside < count) has_jail_id = true;
  }
  return identity;
}

struct NamespaceRow {
  int flag;
  const char* name;
};
constexpr NamespaceRow kNamespaces[] = {{CLONE_NEWUSER, "user namespaces"},    {CLONE_NEWNS, "mount namespaces"},
                                        {CLONE_NEWPID, "pid namespaces"},      {CLONE_NEWNET, "network namespaces"},
                                        {CLONE_NEWIPC, "ipc namespaces"},      {CLONE_NEWUTS, "uts namespaces"},
                                        {CLONE_NEWCGROUP, "cgroup namespaces"}};

// Which of the namespaces it was that the machine refused.
[[noreturn]] void fail_namespaces(int error) {
  for (const NamespaceRow& row : kNamespaces)
    if (::unshare(row.flag) != 0) fail(kStatusFd, Fault::refused, row.name, "cannot make one", errno);
  fail(kStatusFd, Fault::refused, "user namespaces", "cannot make the namespaces together", error);
}

// A SIGCHLD that is waiting to be read instead of being delivered.
int child_signals() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  const int fd = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) fail(kStatusFd, Fault::refused, "signalfd", "cannot make one", errno);
  return fd;
}

// Without a pid namespace: the program's group, and what has left it and come back to us as a child.
void kill_without_namespace(pid_t program) {
  ::kill(-program, SIGKILL);
  const std::string self = std::to_string(::getpid());
  const std::string children = read_path("/proc/self/task/" + self + "/children");
  const char* at = children.c_str();
  int used = 0;
  for (int pid = 0; std::sscanf(at, "%d%n", &pid, &used) == 1; at += used) ::kill(pid, SIGKILL);
}

[[noreturn]] void watch(pid_t program, int monitor, bool namespaced) {
  const int signals = child_signals();
  int wait_status = SIGKILL;   // when the lifeline is cut first
  bool running = true;
  while (running) {
    // The program may have ended before its signal was blocked: reap before waiting.
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != program) continue;
      wait_status = status;
      running = false;
    }
    if (!running) break;
    pollfd polls[3] = {{signals, POLLIN, 0}, {kLifelineFd, 0, 0}, {monitor, 0, 0}};
    ::poll(polls, 3, -1);
    if (polls[1].revents != 0 || polls[2].revents != 0) break;
    signalfd_siginfo taken;
    while (::read(signals, &taken, sizeof taken) > 0) {
    }
  }
  for (int tries = 0; tries < 2000; ++tries) {
    if (namespaced)
      ::kill(-1, SIGKILL);
    else
      kill_without_namespace(program);
    pid_t pid;
    int status = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0)
      if (pid == program) wait_status = status;
    if (pid < 0 && errno == ECHILD) break;
    ::usleep(500);
  }
  Message message;
  message.kind = Message::ended;
  message.wait_status = wait_status;
  send(kStatusFd, message);
  ::_exit(0);
}

[[noreturn]] void run_keeper(const Order& order, bool as_root, int monitor) {
  char go = 0;
  if (::read(monitor, &go, 1) != 1) ::_exit(1);   // the monitor has reported why
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    fail(kStatusFd, Fault::refused, "parent-death signal", "cannot ask for it", errno);
  write_path("/proc/self/oom_score_adj", "1000");   // whoever runs out of memory, the jail goes first
  if (::sethostname("jail", 4) != 0)
    fail(kStatusFd, Fault::refused, "uts namespaces", "cannot set the host name", errno);
  build_root(order, as_root);
  drop_privileges(as_root);
  // Changing the user has cleared both of these.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);
  const pid_t program = start_program(order, monitor);
  keep(program, monitor);
}

// Waits for the keeper; when the lifeline is cut and the keeper does not end by itself, kills it.
[[noreturn]] void monitor_keeper(pid_t keeper) {
  const int signals = child_signals();
  bool cut = false;
  for (;;) {
    if (::waitpid(keeper, nullptr, WNOHANG) != 0) ::_exit(0);
    pollfd polls[2] = {{signals, POLLIN, 0}, {cut ? -1 : kLifelineFd, 0, 0}};
    const int ready = ::poll(polls, 2, cut ? 2000 : -1);
    if (polls[1].revents != 0) cut = true;
    if (ready == 0) ::kill(keeper, SIGKILL);
    signalfd_siginfo taken;
    while (::read(signals, &taken, sizeof taken) > 0) {
    }
  }
}

[[noreturn]] void run_isolated(const Order& order) {
  bool has_user = false, has_group = false;
  const std::string users = identity_map("/proc/self/uid_map", has_user),
                    groups = identity_map("/proc/self/gid_map", has_group);
  if (users.empty()) fail(kStatusFd, Fault::refused, "/proc", "cannot read /proc/self/uid_map", errno);
  const bool as_root = ::geteuid() == 0 && has_user && has_group;

  int go[2];
  if (::pipe2(go, O_CLOEXEC) != 0) fail(kStatusFd, Fault::refused, "pipes", "cannot make one", errno);
  unsigned long flags = SIGCHLD;
  for (const NamespaceRow& row : kNamespaces) flags |= static_cast<unsigned long>(row.flag);
  const auto keeper = static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (keeper < 0) fail_namespaces(errno);
  if (keeper == 0) {
    ::close(go[1]);
    run_keeper(order, as_root, go[0]);
  }
  ::close(go[0]);
  ::syscall(SYS_close_range, 0u, 2u, 0u);
  for (std::size_t i = 0; i < order.fds.size(); ++i) ::close(kFirstFd + static_cast<int>(i));

  const std::string proc = "/proc/" + std::to_string(keeper);
  const std::string jail_id = std::to_string(kJailId);
  const std::string user_map = as_root ? users : jail_id + " " + std::to_string(::geteuid()) + " 1\n";
  const std::string group_map = as_root ? groups : jail_id + " " + std::to_string(::getegid()) + " 1\n";
  if ((!as_root && !write_path(proc + "/setgroups", "deny")) || !write_path(proc + "/uid_map", user_map) ||
      !write_path(proc + "/gid_map", group_map))
    fail(kStatusFd, Fault::refused, "user id map", "cannot write the id map of a user namespace", errno);
  if (::write(go[1], "g", 1) != 1) fail(kStatusFd, Fault::refused, "pipes", "cannot write to one", errno);
  monitor_keeper(keeper);   // go[1] stays open: its end tells the keeper that the monitor is gone
}

[[noreturn]] void run_open(const Order& order) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t program = start_program(order, -1);
  watch(program, -1, false);
}

}  // namespace

void keep(pid_t program, int monitor) { watch(program, monitor, true); }

}  // namespace hone::jail

int main(int argc, char** argv) {
  using namespace hone::jail;
  if (argc == 2 && std::string(argv[1]) == "--nothing") return 0;   // what the trial jail runs
  struct stat status = {};
  if (argc != 1 || ::fstat(kStatusFd, &status) != 0 || !S_ISSOCK(status.st_mode)) {
    std::fputs("hone-jail is started by hone, see `hone doctor`\n", stderr);
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  Order order;
  if (!decode(read_all(kOrderFd), order))
    fail(kStatusFd, Fault::refused, "hone-jail", "it is of another version than hone", EPROTO);
  ::close(kOrderFd);
  ::syscall(SYS_close_range, static_cast<unsigned>(kFirstFd) + static_cast<unsigned>(order.fds.size()), ~0u, 0u);
  if (!order.isolate) run_open(order);
  run_isolated(order);
}
