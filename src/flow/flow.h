// Agents at work on a run: `goal` (one agent, until the target or a budget) and `flame-chase` (several alternate in fresh
// sessions on one worktree under one budget). The launcher owns goal, budgets and record: it measures, it retains, it
// says when the end has come. All state is in the ledger; a launcher that was killed is resumed from it.
#ifndef HONE_FLOW_FLOW_H
#define HONE_FLOW_FLOW_H

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/evaluator.h"
#include "contract/task.h"
#include "driver/driver.h"
#include "flow/limits.h"
#include "flow/trace.h"
#include "run/ledger.h"
#include "run/run.h"

namespace hone {

struct FlowAgent {
  std::string role;                      // agent, first_chaser, second_chaser, ...
  std::string text;                      // as typed: a driver's spec, or tuner[:STRATEGY]
  std::string name;                      // short, for rows and the trace
  std::optional<AgentSpec> spec;         // none: the tuner
  std::string strategy;                  // the tuner's
};
// "SPEC" or "ROLE=SPEC" in the flow's order; roles of flame-chase: first_chaser, second_chaser. Kind usage.
Result<std::vector<FlowAgent>> parse_flow_agents(const std::string& flow, const std::vector<std::string>& agents);

struct FlowOptions {
  std::string flow;                      // goal, flame-chase
  std::vector<FlowAgent> agents;
  Budget budget;
  std::optional<double> target;
  Breakers breakers;
  std::uint64_t seed = 0;                // of tuners
  int slice = 8;                         // evaluations of a tuner's turn
  double grace_s = 30;                   // for a turn that has nothing left to win
  TurnLimits limits;
  TraceLimits trace;
  std::vector<std::string> env;          // NAME=value, passed on by allow-list
  bool confined = false;
  std::vector<fs::path> hidden;          // with `confined`: what the programs do not see (hidden_from_agents)
  int workloads = 0;                     // of the task
  std::map<std::string, std::string> shown;   // files of the worktree that are not the agents' (run/worktree.h)
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const std::string&)> progress;
  std::function<Result<std::unique_ptr<Driver>>(const AgentSpec&)> make_driver = hone::make_driver;
};

// Runs beside this one, and what the task's leak bans took out.
Result<std::vector<fs::path>> hidden_from_agents(const Run& run, const Task& task);

// Works until an end. `ledger` is the run's, whose lock the caller holds. Errors as the machine gives them; the ledger then
// says that the run was broken off.
Result<FlowEnd> run_flow(const Run& run, Ledger ledger, const FlowOptions& options, Evaluator& evaluator);

constexpr double kDefaultFlowSeconds = 8 * 3600;   // when no budget is given at all

}  // namespace hone

#endif
