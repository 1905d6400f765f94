#include "sandbox/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.h"

namespace hone {
namespace {

constexpr double kStartTimeout = 60;   // an overloaded machine is slow, not without sandbox
constexpr double kEndTimeout = 10;     // after the lifeline was cut; then SIGKILL
constexpr std::string_view kOff = "or go on without isolation, at your own risk, with --sandbox=off";

Error system_error(const char* what) {
  return make_error(ErrorKind::environment, "{}: {}", what, std::strerror(errno));
}

Result<std::pair<Fd, Fd>> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
  return std::pair<Fd, Fd>(Fd(fds[0]), Fd(fds[1]));
}

// A file in memory that nobody can change any more, read from its start.
Result<Fd> sealed_file(const char* name, std::string_view bytes) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open()) return fail(system_error("cannot make a file in memory"));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(system_error("cannot fill a file in memory"));
    done += static_cast<std::size_t>(n);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0 ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return fail(system_error("cannot seal a file in memory"));
  return file;
}

std::string read_setting(const char* path) {
  auto text = read_file(path, 64);
  return text ? *text : std::string();
}

std::string hint_for(const std::string& facility, int error) {
  if (facility == "hone-jail") return "install hone and its share/hone/libexec from the same build";
  std::string advice;
  if (read_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").starts_with("1")) {
    advice = "AppArmor restricts user namespaces here (sysctl kernel.apparmor_restrict_unprivileged_userns=0 lifts it)";
  } else if (facility == "user namespaces" && error == ENOSPC) {
    advice = "raise sysctl user.max_user_namespaces";
  } else if (facility == "user namespaces" &&
             read_setting("/proc/sys/kernel/unprivileged_userns_clone").starts_with("0")) {
    advice = "set sysctl kernel.unprivileged_userns_clone=1";
  } else if (facility == "seccomp") {
    advice = "the kernel needs CONFIG_SECCOMP_FILTER";
  } else if (error == ENOSYS || error == EINVAL) {
    advice = "the kernel must be Linux 5.14 or later, with namespaces compiled in";
  } else {
    advice =
        "a container, a chroot or a security policy refuses it; allow it there (docker: --privileged, or seccomp and "
        "AppArmor unconfined)";
  }
  return fmt::format("{}, {}", advice, kOff);
}

Error error_of(const jail::Message& message, SandboxStatus* refusal) {
  const std::string facility(message.facility, ::strnlen(message.facility, sizeof message.facility));
  const std::string detail(message.detail, ::strnlen(message.detail, sizeof message.detail));
  const char* words = std::strerror(message.error);
  switch (message.fault) {
    case jail::Fault::io:
      return make_error(ErrorKind::io, "sandbox: {}: {}", detail, words);
    case jail::Fault::program:
      return make_error(ErrorKind::environment, "sandbox: {}: {}", detail, words);
    case jail::Fault::refused:
      break;
  }
  if (refusal != nullptr)
    *refusal = {false, facility, fmt::format("{}: {}", detail, words), hint_for(facility, message.error)};
  return make_error(ErrorKind::sandbox_unavailable, "this machine refuses the sandbox: {}: {}: {}", facility, detail,
                    words)
      .with_hint(hint_for(facility, message.error));
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::unique_ptr<Supervisor>> Supervisor::start(const fs::path& jail, SupervisorSpec spec) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor(std::move(spec)));
  HONE_CHECK(supervisor->spawn(jail));
  HONE_CHECK(supervisor->await_start());
  return supervisor;
}

Result<> Supervisor::spawn(const fs::path& jail) {
  HONE_TRY(auto out, make_pipe());
  HONE_TRY(auto err, make_pipe());
  HONE_TRY(auto lifeline, make_pipe());
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(system_error("cannot make a socket"));
  status_ = Fd(pair[0]);
  const Fd status_there(pair[1]);
  const int on = 1;
  ::setsockopt(status_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);   // tells the program's pid as seen from here
  HONE_TRY(const Fd input, spec_.stdin_text.empty() ? Result<Fd>(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)))
                                                    : sealed_file("stdin", spec_.stdin_text));
  HONE_TRY(const Fd order, sealed_file("order", jail::encode(spec_.order)));
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!input.open() || !wake_.open()) return fail(system_error("cannot open a descriptor"));

  // Sources are moved above every target first, so that no move overwrites one that is still needed.
  std::vector<int> sources = {input.get(),        out.second.get(),     err.second.get(),
                              status_there.get(), lifeline.first.get(), order.get()};
  sources.insert(sources.end(), spec_.fds.begin(), spec_.fds.end());
  std::vector<Fd> moved;
  for (int source : sources) {
    moved.emplace_back(::fcntl(source, F_DUPFD_CLOEXEC, static_cast<int>(sources.size())));
    if (!moved.back().open()) return fail(system_error("cannot hand on a descriptor"));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (std::size_t i = 0; i < moved.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, moved[i].get(), static_cast<int>(i));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A session of its own: the terminal's Ctrl-C is Hone's to handle.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = "hone-jail";
  char* argv[] = {name.data(), nullptr};
  char* env[] = {nullptr};
  begin_s_ = now_s();
  const int code = ::posix_spawn(&monitor_, jail.c_str(), &actions, &attributes, argv, env);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) {
    monitor_ = -1;
    return fail(make_error(ErrorKind::sandbox_unavailable, "cannot start {}: {}", jail.string(), std::strerror(code))
                    .with_hint(hint_for("hone-jail", code)));
  }
  monitor_fd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, monitor_, 0)));
  if (!monitor_fd_.open()) return fail(system_error("cannot watch hone-jail"));
  lifeline_ = std::move(lifeline.second);
  out_ = std::move(out.first);
  err_ = std::move(err.first);
  for (const Fd* stream : {&out_, &err_, &status_}) ::fcntl(stream->get(), F_SETFL, O_NONBLOCK);
  return {};
}

// The next message; kind internal when the other side has hung up or nothing came in time.
Result<jail::Message> Supervisor::receive(double timeout_s) {
  const double end = now_s() + timeout_s;
  for (;;) {
    jail::Message message;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    iovec part = {&message, sizeof message};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(status_.get(), &header, MSG_CMSG_CLOEXEC);
    if (n == sizeof message) {
      for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_CREDENTIALS ||
            message.kind != jail::Message::hello)
          continue;
        ucred sender;
        std::memcpy(&sender, CMSG_DATA(each), sizeof sender);
        program_ = sender.pid;
      }
      return message;
    }
    if (n >= 0) return fail(ErrorKind::internal, "hone-jail ended without a word");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail(system_error("cannot hear hone-jail"));
    const double left = end - now_s();
    if (left <= 0) return fail(ErrorKind::internal, "no word from hone-jail in {:.0f} s", timeout_s);
    pollfd poll = {status_.get(), POLLIN, 0};
    ::poll(&poll, 1, static_cast<int>(std::ceil(left * 1000)));
  }
}

Result<> Supervisor::await_start() {
  const double end = now_s() + kStartTimeout;
  for (;;) {
    if (spec_.cancel != nullptr && spec_.cancel->load())
      return fail(ErrorKind::cancelled, "cancelled before the program had started");
    auto message = receive(spec_.cancel != nullptr ? 0.05 : kStartTimeout);
    if (!message && message.error().kind == ErrorKind::internal && spec_.cancel != nullptr && now_s() < end) {
      siginfo_t info = {};
      const bool gone = ::waitid(P_PID, static_cast<id_t>(monitor_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
                        info.si_pid == monitor_;
      if (!gone) continue;
    }
    if (!message)
      return fail(make_error(ErrorKind::sandbox_unavailable, "the sandbox did not start: {}", message.error().message)
                      .with_hint(hint_for("", EPERM)));
    if (message->kind == jail::Message::failed) return fail(error_of(*message, spec_.refusal));
    if (message->kind == jail::Message::started) return {};
    if (message->kind == jail::Message::ended)
      return fail(ErrorKind::internal, "hone-jail reported an end before a start");
  }
}

Supervisor::~Supervisor() {
  kill();
  if (monitor_ > 0) {   // never watched: the start has failed
    bool gone = false;
    if (monitor_fd_.open()) {
      pollfd poll = {monitor_fd_.get(), POLLIN, 0};
      gone = ::poll(&poll, 1, static_cast<int>(kEndTimeout * 1000)) == 1;
    }
    if (!gone) ::kill(monitor_, SIGKILL);
    reap();
  }
}

void Supervisor::reap() {
  int status = 0;
  rusage usage = {};
  pid_t done;
  do done = ::wait4(monitor_, &status, 0, &usage);
  while (done < 0 && errno == EINTR);
  monitor_ = -1;
  const std::lock_guard lock(mutex_);
  outcome_.max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void Supervisor::cut_lifeline() {
  const std::lock_guard lock(mutex_);
  lifeline_.reset();
  if (cut_s_ == 0) cut_s_ = now_s();
}

void Supervisor::check_limits() {
  bool stop = false;
  {
    const std::lock_guard lock(mutex_);
    if (lifeline_.open()) {
      if (spec_.wall_s > 0 && now_s() - begin_s_ > spec_.wall_s) stop = outcome_.timed_out = true;
      if (outcome_.out.size() + outcome_.err.size() + outcome_.out_dropped + outcome_.err_dropped > spec_.flood_bytes)
        stop = outcome_.flooded = true;
      if (spec_.cancel != nullptr && spec_.cancel->load()) stop = outcome_.cancelled = true;
    } else if (cut_s_ == 0) {
      stop = true;   // kill() has cut it
    }
  }
  if (stop) cut_lifeline();
  if (cut_s_ > 0 && now_s() - cut_s_ > kEndTimeout) ::kill(monitor_, SIGKILL);
}

void Supervisor::take_messages() {
  for (auto message = receive(0); message; message = receive(0)) {
    if (message->kind != jail::Message::ended) continue;
    const std::lock_guard lock(mutex_);
    wait_status_ = message->wait_status;
  }
}

// False at end of file.
bool Supervisor::drain(Fd& stream, std::string& kept, std::uint64_t& dropped) {
  char buffer[65536];
  const ssize_t n = ::read(stream.get(), buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  const std::lock_guard lock(mutex_);
  const std::size_t take = std::min(static_cast<std::size_t>(n), spec_.output_bytes - kept.size());
  kept.append(buffer, take);
  dropped += static_cast<std::size_t>(n) - take;
  return true;
}

int Supervisor::poll_timeout_ms() const {
  double left = 3600;
  if (cut_s_ > 0)
    left = 0.5;
  else if (spec_.cancel != nullptr)
    left = 0.02;
  if (cut_s_ == 0 && spec_.wall_s > 0) left = std::min(left, begin_s_ + spec_.wall_s - now_s());
  return static_cast<int>(std::ceil(std::max(left, 0.0) * 1000)) + (left > 0 ? 0 : 1);
}

void Supervisor::watch() {
  for (bool gone = false; !gone;) {
    pollfd polls[4] = {
        {monitor_fd_.get(), POLLIN, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(polls, 4, poll_timeout_ms());
    if (polls[1].revents != 0 && !drain(out_, outcome_.out, outcome_.out_dropped)) out_.reset();
    if (polls[2].revents != 0 && !drain(err_, outcome_.err, outcome_.err_dropped)) err_.reset();
    if (polls[3].revents != 0) {
      std::uint64_t count;
      [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
    }
    check_limits();
    gone = polls[0].revents != 0;
  }
  // hone-jail is gone, and with it every process that could write: what is in the pipes is the rest.
  for (Fd* stream : {&out_, &err_}) {
    std::string& kept = stream == &out_ ? outcome_.out : outcome_.err;
    std::uint64_t& dropped = stream == &out_ ? outcome_.out_dropped : outcome_.err_dropped;
    for (pollfd poll = {stream->get(), POLLIN, 0}; stream->open() && ::poll(&poll, 1, 0) > 0;)
      if (!drain(*stream, kept, dropped)) stream->reset();
  }
  take_messages();
  reap();
  const std::lock_guard lock(mutex_);
  lifeline_.reset();
  outcome_.wall_s = now_s() - begin_s_;
  if (WIFEXITED(wait_status_)) outcome_.exit_code = WEXITSTATUS(wait_status_);
  if (WIFSIGNALED(wait_status_)) outcome_.signal = WTERMSIG(wait_status_);
  ended_ = true;
  changed_.notify_all();
}

ProcessOutcome Supervisor::outcome() {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

bool Supervisor::running() {
  const std::lock_guard lock(mutex_);
  return !ended_;
}

void Supervisor::kill() {
  {
    const std::lock_guard lock(mutex_);
    lifeline_.reset();
  }
  if (wake_.open()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }
  if (thread_.joinable()) thread_.join();
}

ProcessOutcome Supervisor::wait(double timeout_s) {
  bool late = false;
  {
    std::unique_lock lock(mutex_);
    late = !changed_.wait_for(lock, std::chrono::duration<double>(timeout_s), [this] { return ended_; });
    if (late && lifeline_.open()) outcome_.timed_out = true;
  }
  kill();
  return outcome();
}

std::string Supervisor::output() {
  const std::lock_guard lock(mutex_);
  return outcome_.out + outcome_.err;
}

std::uint64_t Supervisor::output_seen() {
  const std::lock_guard lock(mutex_);
  return outcome_.out.size() + outcome_.err.size() + outcome_.out_dropped + outcome_.err_dropped;
}

}  // namespace hone
