// What goes on right now, for `hone status` and `hone watch`: kept in RUN/live.json (hone.live/1) while a launcher works. A
// resumed run reads from it what the turn that was cut had used by then.
#ifndef HONE_FLOW_LIVE_H
#define HONE_FLOW_LIVE_H

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "run/run.h"
#include "run/turns.h"

namespace hone {

Spent spent_of(const Usage& usage);

class Live {
 public:
  explicit Live(std::vector<std::pair<std::string, std::string>> agents) : agents_(std::move(agents)) {}   // role, name

  // Any thread.
  void begin(int turn, int attempt, const std::string& role);
  void event(const AgentEvent& event);
  void end();
  void paused(bool is) { const std::lock_guard held(mutex_); paused_ = is; }
  Spent spent() const;                   // of the turn that goes on, as its program reported it so far
  // schema, time, pid, elapsed_s, state, queue, turn, attempt, role, usage, agents[]: role, agent, state, turn_s, silent_s, last
  nlohmann::json snapshot(double elapsed_s, int queue) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> agents_;
  bool paused_ = false, in_turn_ = false;
  int turn_ = 0, attempt_ = 0;
  std::string role_;
  double began_s_ = 0, last_s_ = 0;      // this process's clock
  Usage usage_;
  nlohmann::json last_;                  // kind, text, tool
};

fs::path live_file(const Run& run);

// What a killed launcher left: the turn it was in, its use, and the run's clock; nullopt when there is none, or when the
// clock says more than can have passed since the ledger was last written to.
struct LeftLive {
  int turn = 0, attempt = 0;
  Spent spent;
  double elapsed_s = 0;
};
std::optional<LeftLive> left_live(const Run& run, double ledger_elapsed_s);

}  // namespace hone

#endif
