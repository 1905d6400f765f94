#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver/keeper/keeper.h"

namespace {

using hone::keeper::View;

int status_fd = -1;

void tell(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(status_fd, text.data(), text.size()) < 0) ::_exit(1);
}

[[noreturn]] void give_up(const std::string& what) {
  tell("error " + what);
  ::_exit(1);
}

bool write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return done;
}

// Empty when this process's next child is the first of a PID namespace, in a mount namespace of its own; else why not.
std::string separate() {
  constexpr int kinds = CLONE_NEWPID | CLONE_NEWNS;
  if (::unshare(kinds) == 0) return "";
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(kinds | CLONE_NEWUSER) != 0) return std::strerror(errno);
  (void)write_text("/proc/self/setgroups", "deny");
  const std::string users = std::to_string(user), groups = std::to_string(group);
  if (!write_text("/proc/self/uid_map", users + " " + users + " 1") || !write_text("/proc/self/gid_map", groups + " " + groups + " 1"))
    give_up("user namespace: its ids can't be mapped");
  return "";
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// This process's children that live.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* each = ::readdir(folder)) {
    const pid_t pid = std::atoi(each->d_name);
    if (pid <= 0 || pid == ::getpid()) continue;
    std::FILE* file = std::fopen((std::string("/proc/") + each->d_name + "/stat").c_str(), "re");
    if (file == nullptr) continue;
    char line[512] = {};
    const std::size_t size = std::fread(line, 1, sizeof line - 1, file);
    std::fclose(file);
    const char* end = size > 0 ? std::strrchr(line, ')') : nullptr;
    char state = 0;
    int parent = 0;
    if (end == nullptr || std::sscanf(end, ") %c %d", &state, &parent) != 2 || state == 'Z') continue;
    if (parent == ::getpid()) found.push_back(pid);
  }
  ::closedir(folder);
  return found;
}

// How many of those that have ended were killed.
int reap() {
  int killed = 0, status = 0;
  while (::waitpid(-1, &status, WNOHANG) > 0) killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
  return killed;
}

// Whether anything lives but this process: of the namespace, or of its children.
bool alone(bool own_namespace) { return own_namespace ? ::kill(-1, 0) != 0 && errno == ESRCH : children().empty(); }

// Ends what the program left; how many that were. What is on its way out gets a moment.
int sweep(bool own_namespace) {
  for (int i = 0; i < 20 && !alone(own_namespace); ++i) {
    ::usleep(25000);
    (void)reap();
  }
  int count = 0;
  for (int i = 0; i < 200 && !alone(own_namespace); ++i) {
    // Children of the killed come to this process later, each by its turn.
    if (own_namespace) ::kill(-1, SIGKILL);
    else for (const pid_t pid : children()) ::kill(pid, SIGKILL);
    ::usleep(5000);
    count += reap();
  }
  return count;
}

[[noreturn]] void run_program(char** argv, bool confined) {
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (confined)
    if (const std::string failed = hone::keeper::give_up_privileges(); !failed.empty()) give_up("view: " + failed);
  ::execv(argv[0], argv);
  give_up(std::string("start: ") + std::strerror(errno));
}

// The first process of the namespace, or a subreaper: starts the program, waits for it, sweeps.
[[noreturn]] void keep(char** argv, const View& view, bool own_namespace) {
  ::prctl(PR_SET_PDEATHSIG, own_namespace ? SIGKILL : SIGUSR1);
  if (own_namespace) {
    // Where nothing was asked of the view, a machine that allows no mounts loses only the namespace's own /proc.
    if (const std::string failed = set_up_view(view); !failed.empty() && view.confined) give_up("view: " + failed);
  } else {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  const pid_t program = ::fork();
  if (program < 0) give_up(std::string("fork: ") + std::strerror(errno));
  if (program == 0) run_program(argv, view.confined);
  for (const int fd : {0, 1, 2}) ::close(fd);
  const sigset_t set = watched();
  for (;;) {
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (signal == SIGUSR1) {
      if (own_namespace) ::kill(-1, SIGKILL);
      else ::kill(program, SIGKILL);
    } else if (signal > 0 && signal != SIGCHLD) {
      ::kill(program, signal);
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != program) continue;
      const int left = sweep(own_namespace);
      tell(std::string("ended ") + (WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "signal " + std::to_string(WTERMSIG(status))) +
           " left " + std::to_string(left));
      ::_exit(0);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  View view;
  int i = 1;
  if (argc > 1) status_fd = std::atoi(argv[i++]);
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string word = argv[i];
    if (word == "--confined") view.confined = true;
    else if (word == "--write" && i + 1 < argc) view.writable.emplace_back(argv[++i]);
    else if (word == "--hide" && i + 1 < argc) view.hidden.emplace_back(argv[++i]);
  }
  if (status_fd <= 2 || i + 1 >= argc) {
    std::fputs("hone-keeper is started by hone, not by hand\n", stderr);
    return 2;
  }
  ::fcntl(status_fd, F_SETFD, FD_CLOEXEC);
  const sigset_t set = watched();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  const std::string refused = separate();
  // A namespace dies with this process; without one the inner process has to end what is there.
  ::prctl(PR_SET_PDEATHSIG, refused.empty() ? SIGKILL : SIGUSR1);
  pollfd reader{status_fd, 0, 0};
  if (::poll(&reader, 1, 0) == 1) return 1;   // the launcher died before it could be watched
  if (!refused.empty() && view.confined) give_up("confined: no namespaces: " + refused);
  tell(refused.empty() ? "namespace" : "subreaper: " + refused);
  const pid_t inner = ::fork();
  if (inner < 0) give_up(std::string("fork: ") + std::strerror(errno));
  if (inner == 0) keep(argv + i + 1, view, refused.empty());
  for (const int fd : {0, 1, 2}) ::close(fd);
  for (;;) {
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(inner, signal);
    if (::waitpid(inner, nullptr, WNOHANG) == inner) return 0;
  }
}
