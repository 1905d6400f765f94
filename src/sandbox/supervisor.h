// One hone-jail from start to end: its pipes, its messages, its time and its output.
#ifndef HONE_SANDBOX_SUPERVISOR_H
#define HONE_SANDBOX_SUPERVISOR_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sandbox/jail/wire.h"
#include "sandbox/sandbox.h"

namespace hone {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct SupervisorSpec {
  jail::Order order;
  std::string stdin_text;
  std::vector<int> fds;   // here; order.fds says where they go
  std::size_t output_bytes = 0;
  std::uint64_t flood_bytes = 0;   // of both streams; then everything is killed
  double wall_s = 0;               // 0 or less: no limit
  const std::atomic<bool>* cancel = nullptr;
  SandboxStatus* refusal = nullptr;   // where to write what the machine refuses, when it does
};

class Supervisor final : public JailedProcess {
 public:
  // Returns when the program is executing. Errors: sandbox_unavailable, environment, io, cancelled.
  static Result<std::unique_ptr<Supervisor>> start(const fs::path& jail, SupervisorSpec spec);
  ~Supervisor() override;

  // Watches in this thread until the end; or leaves that to a thread of its own.
  void watch();
  void watch_in_background() {
    thread_ = std::thread([this] { watch(); });
  }
  ProcessOutcome outcome();

  pid_t pid() const override { return program_; }
  bool running() override;
  void kill() override;
  ProcessOutcome wait(double timeout_s) override;
  std::string output() override;
  std::uint64_t output_seen() override;

 private:
  explicit Supervisor(SupervisorSpec spec) : spec_(std::move(spec)) {}
  Result<> spawn(const fs::path& jail);
  Result<> await_start();
  Result<jail::Message> receive(double timeout_s);
  void cut_lifeline();
  void check_limits();
  void take_messages();
  bool drain(Fd& stream, std::string& kept, std::uint64_t& dropped);
  int poll_timeout_ms() const;
  void reap();

  SupervisorSpec spec_;
  double begin_s_ = 0;
  double cut_s_ = 0;     // when the lifeline was cut; 0: it holds. The watching thread's
  pid_t monitor_ = -1;   // hone-jail itself
  pid_t program_ = -1;
  Fd out_, err_, status_, monitor_fd_, wake_;
  std::thread thread_;

  std::mutex mutex_;   // guards what follows
  std::condition_variable changed_;
  Fd lifeline_;
  ProcessOutcome outcome_;
  int wait_status_ = 9;   // hone-jail gone without a word: as if killed
  bool ended_ = false;
};

}  // namespace hone

#endif
