// The launcher's desk: it alone judges and retains, one measurement at a time, and knows when the target is reached.
#ifndef HONE_FLOW_DESK_H
#define HONE_FLOW_DESK_H

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "agent/evaluator.h"
#include "flow/books.h"
#include "flow/turnstile.h"

namespace hone {

// Who asks, and how to reach them.
struct Caller {
  bool of_turn = false;                        // an agent's program or what it started, not a person
  Progress progress;
  std::function<bool()> gone;                  // they hung up: what waits is given up, what has begun is finished
};

struct DeskOptions {
  std::optional<double> target;
  Budget budget;
  int workloads = 0;                           // of the task
};

class Desk {
 public:
  Desk(Books& books, Evaluator& evaluator, DeskOptions options) : books_(books), evaluator_(evaluator), options_(std::move(options)) {}

  // Requests of run/launcher.h.
  Result<nlohmann::json> bench(const nlohmann::json& request, const Caller& caller);
  Result<nlohmann::json> frontier_add(const nlohmann::json& request, const Caller& caller);
  Result<nlohmann::json> frontier_drop(const nlohmann::json& request, const Caller& caller);
  Result<nlohmann::json> finding(const nlohmann::json& request, const Caller& caller);

  // Whose measurements follow; `role` empty: nobody's, what an agent's left-over asks for is refused.
  void begin_turn(const std::string& role, int turn);
  void end_turn() { begin_turn({}, 0); }
  // Work that the turn waits for.
  int depth() const { return line_.depth(); }
  // Waits until nothing is measured any more.
  void drain();
  // True: ends the measurement that goes on, and refuses others until it is taken back.
  void halt(bool now) { halt_ = now; }
  // Nothing more can be won in this turn: the cause, or nothing.
  std::optional<std::string> closed();

  // For a tuner's turn: measures in line with the others. `held` is the hold on the books that the tuner has; it is let go of
  // while something is measured.
  std::unique_ptr<Evaluator> in_line(std::unique_lock<std::mutex>& held);
  const std::atomic<bool>& halted() const { return halt_; }

 private:
  Result<nlohmann::json> judge_held(std::unique_lock<std::mutex>& held, const Candidate& candidate, const Evaluation& wanted, const Caller& caller);
  // `held`: the books', which it reads.
  Result<> allowed(const Caller& caller, const std::unique_lock<std::mutex>& held);
  Result<Candidate> snapshot(const nlohmann::json& request, const Caller& caller) const;
  std::string by(const Caller& caller);
  int turn(const Caller& caller);

  Books& books_;
  Evaluator& evaluator_;
  const DeskOptions options_;
  Turnstile line_;
  std::atomic<bool> halt_ = false;
  std::mutex turn_mutex_;
  std::string role_;
  int turn_ = 0;
};

// "family: x" in a candidate's NOTES.md, one line; empty when there is none.
std::string field_of_notes(const std::string& notes, const std::string& name);

}  // namespace hone

#endif
