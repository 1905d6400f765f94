// Answers on the run's socket (run/launcher.h): one thread a connection, each told apart by who is at its other end.
#ifndef HONE_FLOW_LISTENER_H
#define HONE_FLOW_LISTENER_H

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "flow/desk.h"
#include "run/run.h"

namespace hone {

class Listener {
 public:
  // What a request gives; called from several threads at once.
  using Answer = std::function<Result<nlohmann::json>(const nlohmann::json& request, const Caller& caller)>;
  static Result<std::unique_ptr<Listener>> start(const Run& run, Answer answer);
  // Hangs up on those who wait and removes the socket; waits for those whose answer is being made.
  ~Listener();

 private:
  Listener(const Run& run, int fd, Answer answer) : run_(run), fd_(fd), answer_(std::move(answer)) {}
  void serve();
  void talk(int fd);

  const Run& run_;
  int fd_;
  Answer answer_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> talking_ = 0;
  std::thread thread_;
};

// Whether this process started that one, or one of its ancestors: an agent's program, and all that came of it. A process
// that cannot be looked at counts as started here.
bool started_here(int pid);

}  // namespace hone

#endif
