#include "driver/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/text.h"
#include "driver/text.h"

namespace hone {
namespace {

constexpr double kLookEvery = 1, kCpuShare = 0.2;   // of a core: an idle program's timers stay far below
constexpr double kOverLeave = 4, kOverStep = 2;    // s: after its closing event a program is gone within 10
constexpr std::size_t kErrorTail = 16 << 10;
constexpr std::uint64_t kLogLimit = std::uint64_t{64} << 20;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read.reset(fds[0]);
    write.reset(fds[1]);
    return true;
  }
};

// Seconds of CPU time of a process and all that descends from it, ended children included.
double cpu_seconds(pid_t root) {
  struct Facts {
    pid_t parent;
    double seconds;
  };
  std::map<pid_t, Facts> all;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return 0;
  static const double tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
  while (const dirent* each = ::readdir(folder)) {
    const pid_t pid = std::atoi(each->d_name);
    if (pid <= 0) continue;
    const auto text = read_file(fs::path("/proc") / each->d_name / "stat", 4096);
    if (!text) continue;
    const std::size_t end = text->rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream words(text->substr(end + 1));
    std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    if (fields.size() < 15) continue;
    double ticks = 0;
    for (int i = 11; i < 15; ++i) ticks += std::atof(fields[static_cast<std::size_t>(i)].c_str());   // user, system, and of waited-for children
    all[pid] = {std::atoi(fields[1].c_str()), ticks / tick};
  }
  ::closedir(folder);
  double sum = 0;
  for (const auto& [pid, facts] : all) {
    pid_t up = pid;
    for (int depth = 0; up > 1 && up != root && depth < 200; ++depth) {
      const auto found = all.find(up);
      up = found == all.end() ? 0 : found->second.parent;
    }
    if (up == root) sum += facts.seconds;
  }
  return sum;
}

// The first half of what may be kept, and then the rest unwritten: a log shows how it began.
class Log {
 public:
  explicit Log(const fs::path& path) : file_(path.empty() ? nullptr : std::fopen(path.c_str(), "we")) {}
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() {
    if (file_ == nullptr) return;
    if (dropped_ > 0) fmt::print(file_, "\n[{} more bytes are not kept]\n", dropped_);
    std::fclose(file_);
  }
  void write(std::string_view bytes) {
    if (file_ == nullptr) return;
    const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), kLogLimit - kept_));
    std::fwrite(bytes.data(), 1, take, file_);
    std::fflush(file_);
    kept_ += take;
    dropped_ += bytes.size() - take;
  }

 private:
  std::FILE* file_;
  std::uint64_t kept_ = 0, dropped_ = 0;
};

// A dialect's own settings, names of the launcher's environment that every program sees, a turn's own: the last wins.
std::vector<std::string> environment_of(const Turn& turn, const std::vector<std::string>& own = {}) {
  std::map<std::string, std::string> all;
  const auto take = [&](const std::vector<std::string>& variables) {
    for (const std::string& each : variables) {
      const std::size_t equals = each.find('=');
      if (equals != std::string::npos && equals > 0) all[each.substr(0, equals)] = each.substr(equals + 1);
    }
  };
  take(own);
  for (const char* name : {"PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR"})
    if (const char* value = std::getenv(name)) all[name] = value;
  take(turn.env);
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

std::string value_of(const std::vector<std::string>& env, const std::string& name) {
  for (const std::string& each : env)
    if (each.starts_with(name + "=")) return each.substr(name.size() + 1);
  return "";
}

class Child {
 public:
  Child(const Turn& turn, Conversation& conversation) : turn_(turn), conversation_(conversation), log_(turn.log) {}
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Result<> start(const ChildSpec& spec);
  Result<ChildEnd> watch();

 private:
  void hear(Fd& from, bool is_error);
  void hear_status();
  void take_lines(std::string_view bytes);
  void give();
  void look(double now);
  void cut(TurnEnd end, const std::string& reason);
  void press(double now);

  const Turn& turn_;
  Conversation& conversation_;
  Log log_;
  pid_t pid_ = -1;
  Fd in_, out_, err_, status_;
  std::string pending_, line_, told_;
  bool deaf_ = false, ended_ = false, closed_input_ = false;
  std::uint64_t bytes_ = 0;
  std::string failed_;                         // the keeper's error
  double start_s_ = now_s(), alive_s_ = start_s_, looked_s_ = start_s_, cpu_s_ = 0;
  int pressed_ = 0;                            // steps of stopping that were taken
  double press_s_ = 0;                         // when the next one is due; 0: none
  ChildEnd end_;
};

Result<> Child::start(const ChildSpec& spec) {
  const std::string program = find_agent_program(spec.argv.at(0), turn_);
  if (program.empty()) return fail(make_error(ErrorKind::environment, "{} was not found", spec.argv[0]).with_hint("install it, or put its folder into PATH"));
  std::error_code there;
  if (!fs::is_directory(turn_.cwd, there)) return fail(ErrorKind::environment, "the folder to work in, {}, does not exist", turn_.cwd.string());
  HONE_TRY(const fs::path share, share_dir());
  const std::string keeper = (share / "libexec/hone-keeper").string();
  Pipe in, out, err, status;
  if (!in.open() || !out.open() || !err.open() || !status.open()) return fail(ErrorKind::environment, "cannot make a pipe: {}", std::strerror(errno));

  const std::vector<std::string> env = environment_of(turn_, spec.env);
  std::vector<std::string> argv = {keeper, "3"};
  if (turn_.confined) {
    argv.emplace_back("--confined");
    std::set<std::string> writable;
    writable.insert(turn_.cwd.string());
    for (const fs::path& each : turn_.writable) writable.insert(each.string());
    const std::string home = value_of(env, "HOME"), temporary = value_of(env, "TMPDIR");
    writable.insert(temporary.empty() ? "/tmp" : temporary);
    // What the programs keep of their sessions; they don't start without.
    std::error_code code;
    for (const char* own : {".claude", ".claude.json", ".codex", ".vibe", ".cache"})
      if (!home.empty() && fs::exists(fs::path(home) / own, code)) writable.insert((fs::path(home) / own).string());
    for (const std::string& each : writable) argv.insert(argv.end(), {"--write", each});
    for (const fs::path& each : turn_.hidden) argv.insert(argv.end(), {"--hide", each.string()});
  }
  argv.insert(argv.end(), {"--", program});
  argv.insert(argv.end(), spec.argv.begin() + 1, spec.argv.end());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int ends[4] = {in.read.get(), out.write.get(), err.write.get(), status.write.get()};
  for (int i = 0; i < 4; ++i) posix_spawn_file_actions_adddup2(&actions, ends[i], i);
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  posix_spawn_file_actions_addchdir_np(&actions, turn_.cwd.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const auto pointers = [](const std::vector<std::string>& strings) {
    std::vector<char*> made;
    for (const std::string& each : strings) made.push_back(const_cast<char*>(each.c_str()));
    made.push_back(nullptr);
    return made;
  };
  const int code = ::posix_spawn(&pid_, keeper.c_str(), &actions, &attributes, pointers(argv).data(), pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) {
    pid_ = -1;
    return fail(make_error(ErrorKind::environment, "cannot start {}: {}", keeper, std::strerror(code))
                    .with_hint("install hone and its share/hone/libexec from the same build"));
  }
  in_.reset(::dup(in.write.get()));
  out_.reset(::dup(out.read.get()));
  err_.reset(::dup(err.read.get()));
  status_.reset(::dup(status.read.get()));
  for (const Fd* each : {&in_, &out_, &err_, &status_}) {
    ::fcntl(each->get(), F_SETFD, FD_CLOEXEC);
    ::fcntl(each->get(), F_SETFL, O_NONBLOCK);
  }
  return {};
}

// A program that prints a line beyond the limit isn't understood any more: it is ended, and what else it prints is not heard.
void Child::take_lines(std::string_view bytes) {
  while (!bytes.empty() && !deaf_) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > turn_.limits.line_bytes) {
      deaf_ = true;
      line_ = {};
      cut(TurnEnd::failed, fmt::format("line_too_long: a line of more than {} on its standard output", format_bytes(turn_.limits.line_bytes)));
      return;
    }
    line_.append(part);
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!line_.empty() && conversation_.line(line_)) alive_s_ = now_s();
    line_.clear();
  }
}

void Child::hear(Fd& from, bool is_error) {
  char buffer[65536];
  for (int i = 0; i < 16; ++i) {
    const ssize_t n = ::read(from.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      if (!is_error && !line_.empty()) take_lines("\n");
      from.reset();
      return;
    }
    const std::string_view bytes(buffer, static_cast<std::size_t>(n));
    bytes_ += bytes.size();
    log_.write(bytes);
    if (is_error) {
      end_.err.append(bytes);
      if (end_.err.size() > 2 * kErrorTail) end_.err.erase(0, end_.err.size() - kErrorTail);
      if (conversation_.stderr_is_life()) alive_s_ = now_s();
    } else {
      take_lines(bytes);
    }
    if (bytes_ > turn_.limits.output_bytes) {
      deaf_ = true;
      cut(TurnEnd::flooded, fmt::format("more than {} of output", format_bytes(turn_.limits.output_bytes)));
      return;
    }
  }
}

void Child::hear_status() {
  char buffer[4096];
  const ssize_t n = ::read(status_.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    status_.reset();
    ended_ = true;
    if (!end_.cut && failed_.empty() && pressed_ < 4) {
      end_.cut = TurnEnd::failed;
      end_.cut_reason = "hone-keeper, which held it, was ended from outside";
    }
    return;
  }
  told_.append(buffer, static_cast<std::size_t>(n));
  for (std::size_t end = 0; (end = told_.find('\n')) != std::string::npos;) {
    const std::string line = told_.substr(0, end);
    told_.erase(0, end + 1);
    if (line.starts_with("error ")) failed_ = line.substr(6);
    if (line.starts_with("subreaper") && turn_.on_event)
      turn_.on_event({EventKind::note, now_s() - start_s_, "no PID namespace, so what the program leaves is ended one by one (" + line + ")", {}, {}});
    char how[16] = {};
    int value = 0, left = 0;
    if (std::sscanf(line.c_str(), "ended %15s %d left %d", how, &value, &left) == 3) {
      (std::string_view(how) == "exit" ? end_.exit_code : end_.signal) = value;
      end_.left_behind = left;
      ended_ = true;
    }
  }
}

void Child::give() {
  if (closed_input_) return;
  pending_ += conversation_.to_send();
  if (pending_.size() > kUnread + turn_.prompt.size()) {
    pending_.clear();
    closed_input_ = true;
    cut(TurnEnd::failed, fmt::format("it asks and does not read: more than {} of answers wait", format_bytes(kUnread)));
  }
  while (!pending_.empty()) {
    const ssize_t n = ::write(in_.get(), pending_.data(), pending_.size());
    if (n > 0) pending_.erase(0, static_cast<std::size_t>(n));
    else if (n < 0 && errno == EINTR) continue;
    else if (n < 0 && errno == EAGAIN) return;
    else {
      pending_.clear();
      closed_input_ = true;
    }
  }
  if (closed_input_ || conversation_.input_done() || conversation_.over()) {
    closed_input_ = true;
    in_.reset();
  }
}

void Child::cut(TurnEnd end, const std::string& reason) {
  if (end_.cut || ended_ || conversation_.over()) return;   // once it is over, its end is on its way
  end_.cut = end;
  end_.cut_reason = reason;
  press_s_ = now_s() + (conversation_.ask_to_stop() ? turn_.limits.stop_s : 0);
}

// The next step of stopping: SIGINT, SIGTERM, everything at once, and the keeper itself.
void Child::press(double now) {
  static constexpr int kSteps[] = {SIGINT, SIGTERM, SIGUSR1, SIGKILL};
  if (press_s_ <= 0 || now < press_s_ || pressed_ >= 4) return;
  ::kill(pid_, kSteps[pressed_++]);
  end_.pressed = true;
  // What has said its last word has nothing left to save.
  const double step = end_.cut ? turn_.limits.stop_s : std::min(kOverStep, turn_.limits.stop_s);
  press_s_ = now + (pressed_ < 3 ? step : 2);
}

void Child::look(double now) {
  if (turn_.cancel != nullptr && turn_.cancel->load()) cut(TurnEnd::cancelled, "cancelled");
  if (now - start_s_ > turn_.limits.wall_s) cut(TurnEnd::overtime, "no end within " + format_duration(turn_.limits.wall_s));
  if (conversation_.over() && press_s_ <= 0) press_s_ = now + std::min(kOverLeave, turn_.limits.stop_s);   // it may go by itself
  if (now - looked_s_ < std::min(kLookEvery, turn_.limits.silence_s / 4)) return;
  const double cpu = cpu_seconds(pid_);
  if (cpu - cpu_s_ > kCpuShare * (now - looked_s_) || (turn_.busy && turn_.busy())) alive_s_ = now;
  cpu_s_ = cpu;
  looked_s_ = now;
  if (now - alive_s_ > turn_.limits.silence_s)
    cut(TurnEnd::silent, fmt::format("no output for {}, no CPU time, nothing in the launcher's queue", format_duration(turn_.limits.silence_s)));
}

Result<ChildEnd> Child::watch() {
  ::signal(SIGPIPE, SIG_IGN);
  while (!ended_) {
    give();
    pollfd polls[4] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {status_.get(), POLLIN, 0}, {pending_.empty() ? -1 : in_.get(), POLLOUT, 0}};
    ::poll(polls, 4, 50);
    if (polls[0].revents != 0) hear(out_, false);
    if (polls[1].revents != 0) hear(err_, true);
    if (polls[2].revents != 0) hear_status();
    const double now = now_s();
    look(now);
    press(now);
  }
  // All that could write is gone: what lies in the pipes is the rest.
  for (int i = 0; i < 4096 && out_.get() >= 0; ++i) {
    pollfd one{out_.get(), POLLIN, 0};
    if (::poll(&one, 1, 100) <= 0) break;
    hear(out_, false);
  }
  if (err_.get() >= 0) hear(err_, true);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  end_.wall_s = now_s() - start_s_;
  if (!failed_.empty()) {
    const bool view = failed_.starts_with("view:") || failed_.starts_with("confined:");
    return fail(make_error(view ? ErrorKind::sandbox_unavailable : ErrorKind::environment, "the agent program could not be started: {}", failed_)
                    .with_hint(view ? "leave --confined out, or run where namespaces are allowed" : "is it a program of this machine?"));
  }
  return end_;
}

}  // namespace

std::string find_agent_program(const std::string& name, const Turn& turn) {
  std::error_code code;
  const auto usable = [&](const fs::path& path) { return ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path, code); };
  if (name.find('/') != std::string::npos) {
    const fs::path path = fs::path(name).is_absolute() ? fs::path(name) : fs::absolute(name);
    return usable(path) ? path.string() : "";
  }
  std::istringstream folders(value_of(environment_of(turn), "PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && usable(fs::path(folder) / name)) return (fs::path(folder) / name).string();
  return "";
}

Result<ChildEnd> run_child(const ChildSpec& spec, const Turn& turn, Conversation& conversation) {
  Child child(turn, conversation);
  HONE_CHECK(child.start(spec));
  return child.watch();
}

}  // namespace hone
