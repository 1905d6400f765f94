// Which job is next. Pure bookkeeping in memory: the store holds what must survive (server/store.h).
//
// Higher priority first. Within a priority, tokens take turns: the one with the fewest running jobs, then the
// one that was served longest ago. Within a token, first in, first out.
#ifndef HONE_SERVER_QUEUE_H
#define HONE_SERVER_QUEUE_H

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace hone::server {

// A compiler's work is done beside a device, not on it.
enum class Needs { device, compiler, compiler_then_device };

struct Waiting {
  std::string job, token;
  int priority = 0;                        // -10 to 10
  std::optional<double> expires_s = {};    // on the monotonic clock: its queue_timeout_s is over
  double since_s = 0;                      // on the same clock: when it began to wait
  Needs needs = Needs::device;
  bool compiling = false;
};

struct QueueLimits {
  std::size_t jobs = 4096;                 // waiting, all tokens together
  std::size_t jobs_of_token = 1024;        // waiting
  std::size_t running_of_token = 64;       // at once, unless its quota says less
};

class Queue {
 public:
  explicit Queue(QueueLimits limits = {}) : limits_(limits) {}

  // Kind unavailable (503) when the queue is full, quota (429) when the token's share of it is.
  Result<> room_for(const std::string& token) const;
  void push(Waiting job);
  // At the head of its token's line: what was running when the server died.
  void push_front(Waiting job);
  // The next one that needs this and nothing else before, which counts as running from now on.
  std::optional<Waiting> pop(Needs needs = Needs::device);
  // The next one that a compiler must see before a device does: it goes on waiting meanwhile. `compiled`, when it is
  // still waiting, makes it a device's.
  std::optional<Waiting> begin_compiling();
  void compiled(const std::string& job);
  void finished(const std::string& token);
  // None: it is not waiting.
  std::optional<Waiting> remove(const std::string& job);
  // Takes those out that have waited too long.
  std::vector<Waiting> take_expired(double now_s);

  // Of a token at once; none: the limit for all.
  void limit_running(const std::string& token, std::optional<std::size_t> jobs);
  std::size_t waiting() const { return waiting_; }
  std::size_t waiting_of(const std::string& token) const;
  std::size_t running_of(const std::string& token) const;
  // Jobs that would run before this one if nothing else came; none: it is not waiting.
  std::optional<std::size_t> ahead_of(const std::string& job) const;

 private:
  struct Line {
    std::map<int, std::deque<Waiting>, std::greater<>> by_priority;
    std::size_t waiting = 0, running = 0;
    std::uint64_t served = 0;              // when it was served last: a count
    std::optional<std::size_t> limit;
  };
  bool may_run(const Line& line) const { return line.running < line.limit.value_or(limits_.running_of_token); }
  struct Found {
    Line* line = nullptr;
    int priority = 0;
    std::size_t index = 0;
  };
  // By rank the first that is `wanted`; `running`: of tokens that may run another one.
  template <class F>
  Found first(bool running, F&& wanted);
  void forget_if_idle(const std::string& token);

  QueueLimits limits_;
  std::map<std::string, Line> lines_;      // by token
  std::size_t waiting_ = 0;
  std::uint64_t served_ = 0;
};

}  // namespace hone::server

#endif
