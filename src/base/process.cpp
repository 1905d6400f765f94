#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/clock.h"

namespace hone {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read_end = fds[0];
    write_end = fds[1];
    return true;
  }
  static void close_end(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& each : strings) out.push_back(const_cast<char*>(each.c_str()));
  out.push_back(nullptr);
  return out;
}

// Takes what is there; false at end of file.
bool drain(int fd, std::string& kept, std::size_t limit, std::uint64_t& dropped, const std::function<void(std::string_view)>& seen = {}) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  if (seen) seen({buffer, static_cast<std::size_t>(n)});
  const std::size_t take = std::min(static_cast<std::size_t>(n), limit - kept.size());
  kept.append(buffer, take);
  dropped += static_cast<std::size_t>(n) - take;
  return true;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) return candidate;
  }
  return "";
}

Result<ProcessOutcome> run_process(const ProcessSpec& spec) {
  const std::string program = find_program(spec.argv.at(0));
  if (program.empty()) return fail(ErrorKind::environment, "{} was not found", spec.argv[0]);
  Pipe in, out, err;
  if (!in.open() || !out.open() || !err.open()) return fail(ErrorKind::environment, "cannot make a pipe: {}", std::strerror(errno));

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, 2);
  for (auto [here, there] : spec.fds) posix_spawn_file_actions_adddup2(&actions, here, there);
  if (!spec.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, spec.cwd.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const double start = now_s();
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, pointers(spec.argv).data(), pointers(spec.env).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) return fail(ErrorKind::environment, "cannot start {}: {}", program, std::strerror(code));
  Pipe::close_end(in.read_end);
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);
  ::fcntl(in.write_end, F_SETFL, O_NONBLOCK);

  ProcessOutcome outcome;
  double asked = 0;              // when the leader got SIGINT
  const auto cancelled = [&] {   // and has had its time
    if (spec.cancel == nullptr || !spec.cancel->load()) return false;
    if (spec.stop_s <= 0) return true;
    if (asked == 0) {
      asked = now_s();
      ::kill(pid, SIGINT);
    }
    return now_s() - asked > spec.stop_s;
  };
  std::size_t written = 0;
  if (spec.stdin_text.empty()) Pipe::close_end(in.write_end);
  bool killed = false;
  // Reading ends at end of file of both streams, or, after a kill or the leader's death, when a
  // grandchild that holds them open has been killed with the group.
  while (out.read_end >= 0 || err.read_end >= 0) {
    pollfd polls[3] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}, {in.write_end, POLLOUT, 0}};
    ::poll(polls, 3, 20);
    if ((polls[0].revents & (POLLIN | POLLHUP)) != 0 && !drain(out.read_end, outcome.out, spec.stdout_limit, outcome.out_dropped)) Pipe::close_end(out.read_end);
    if ((polls[1].revents & (POLLIN | POLLHUP)) != 0 && !drain(err.read_end, outcome.err, spec.stderr_limit, outcome.err_dropped, spec.on_err)) Pipe::close_end(err.read_end);
    if ((polls[2].revents & (POLLOUT | POLLERR)) != 0) {
      const ssize_t n = ::write(in.write_end, spec.stdin_text.data() + written, spec.stdin_text.size() - written);
      if (n > 0) written += static_cast<std::size_t>(n);
      if ((n < 0 && errno != EAGAIN && errno != EINTR) || written == spec.stdin_text.size()) Pipe::close_end(in.write_end);
    }
    if (killed) break;
    outcome.timed_out = now_s() - start > spec.timeout_s;
    outcome.flooded = outcome.out.size() + outcome.err.size() + outcome.out_dropped + outcome.err_dropped > spec.output_kill;
    outcome.cancelled = cancelled();
    siginfo_t info = {};
    const bool ended = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
    if (outcome.timed_out || outcome.flooded || outcome.cancelled || ended) {
      ::kill(-pid, SIGKILL);
      killed = outcome.timed_out || outcome.flooded || outcome.cancelled;
    }
  }
  // Both streams closed does not mean ended: give the leader the rest of its time.
  int status = 0;
  rusage usage = {};
  for (;;) {
    const pid_t done = ::wait4(pid, &status, WNOHANG, &usage);
    if (done == pid || (done < 0 && errno != EINTR)) break;
    if (now_s() - start > spec.timeout_s || cancelled()) {
      outcome.timed_out = outcome.timed_out || now_s() - start > spec.timeout_s;
      ::kill(-pid, SIGKILL);
    }
    ::usleep(500);
  }
  ::kill(-pid, SIGKILL);
  outcome.cancelled = outcome.cancelled || asked > 0;
  outcome.wall_s = now_s() - start;
  outcome.max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

}  // namespace hone
