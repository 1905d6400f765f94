// One turn: a program, or the tuner for a slice of evaluations, watched from beside and ended for reasons that the
// launcher knows itself.
#ifndef HONE_FLOW_TURN_H
#define HONE_FLOW_TURN_H

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "driver/driver.h"
#include "flow/books.h"
#include "flow/desk.h"
#include "flow/flow.h"
#include "flow/live.h"
#include "flow/trace.h"

namespace hone {

// What is asked of the launcher while it works, by people.
struct Wishes {
  std::atomic<bool> stop = false, pause = false, pause_now = false;
};

// Looks after a turn every so often and cuts it when it must: Ctrl-C, a person, a budget, or nothing left to win.
class Watchman {
 public:
  Watchman(Books& books, Desk& desk, Live& live, const FlowOptions& options, const Wishes& wishes);
  ~Watchman();
  const std::atomic<bool>& cut() const { return cut_; }
  std::string cause() const;             // empty: it was not cut

 private:
  void watch();
  void look();
  void cut(const std::string& cause, bool measurement_too);

  Books& books_;
  Desk& desk_;
  Live& live_;
  const FlowOptions& options_;
  const Wishes& wishes_;
  std::atomic<bool> cut_ = false, over_ = false;
  mutable std::mutex mutex_;
  std::string cause_, closing_;
  double closing_s_ = 0, looked_s_ = 0;
  std::thread thread_;
};

struct TurnOutcome {
  std::string end, cause, reason;        // as the row says (run/turns.h)
  bool counted = true, failed = false;
  Spent spent;
  double wall_s = 0;
  int left_behind = 0;
  std::string session;
  std::string exhausted;                 // of a tuner: it has nothing left to do, and why
};

struct TurnSetup {
  const FlowAgent& agent;
  int turn = 1, attempt = 1;
  std::string prompt;
};

// Errors: the program could not be started, or the machine or the disk failed.
Result<TurnOutcome> run_turn(Books& books, Desk& desk, Live& live, Trace& trace, const FlowOptions& options, const Wishes& wishes,
                             const TurnSetup& setup);

}  // namespace hone

#endif
