#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "agent/strategy.h"
#include "agent/tuner.h"
#include "base/text.h"
#include "cli/person.h"
#include "cli/remote.h"
#include "flow/flow.h"
#include "run/launcher.h"
#include "run/record.h"
#include "run/summary.h"
#include "run/worktree.h"

namespace hone::cli {
namespace {

constexpr double kDefaultEvaluations = 60;

struct Options {
  std::string run, flow, budget, target, remote, breakers, turn_limit, silence, grace;
  std::vector<std::string> agents, candidates, pass_env;
  bool resume = false, confined = false;
  std::optional<int> slice;
  std::optional<std::uint64_t> seed;
};

// The run's clocks, sums and ends go over sessions.
Result<> may_begin(const Run& run, const RunProgress& before, const Options& options) {
  if (!before.started || options.resume) return {};
  return fail(make_error(ErrorKind::usage, "this run has begun: {}", spent_text(before))
                  .with_hint("go on with `hone run --resume --run " + shell_word(run.root.string()) + "`, or make a new run with `hone init`"));
}

// As --flow says, else as the run was begun.
Result<std::string> flow_of(const RunProgress& before, const Options& options) {
  const std::vector<std::string> known = {"tuner", "goal", "flame-chase"};
  const std::string flow = !options.flow.empty() ? options.flow : before.started ? before.flow : known.front();
  if (std::find(known.begin(), known.end(), flow) == known.end()) {
    const std::string near = nearest(flow, known);
    return fail(make_error(ErrorKind::usage, "there is no flow {}", flow).with_hint(near.empty() ? "flows: tuner, goal, flame-chase" : "did you mean " + near + "?"));
  }
  if (before.started && flow != before.flow)
    return fail(make_error(ErrorKind::usage, "this run was begun with the flow {}", before.flow).with_hint("resume it with the same flow, or make a new run"));
  return flow;
}

// "tuner", "tuner:random". Roles and other agents belong to the other flows.
Result<std::string> strategy_of(const Options& options) {
  if (options.agents.size() > 1) return fail(make_error(ErrorKind::usage, "the flow tuner takes one agent").with_hint("--agent tuner:ils"));
  if (options.agents.empty()) return std::string();
  const std::string& agent = options.agents[0];
  const std::string name = agent.substr(0, agent.find(':'));
  if (name != "tuner")
    return fail(make_error(ErrorKind::usage, "the flow tuner has no agent {}", agent)
                    .with_hint(nearest(name, {"tuner"}).empty() ? "say --flow goal or --flow flame-chase for agents with a model" : "did you mean tuner?"));
  if (agent == name) return std::string();
  const std::string strategy = agent.substr(name.size() + 1);
  const auto& names = strategy_names();
  if (std::find(names.begin(), names.end(), strategy) == names.end())
    return fail(make_error(ErrorKind::usage, "the tuner has no strategy \"{}\"", strategy).with_hint("strategies: ils, random, grid"));
  return strategy;
}

struct Assignment {
  TunerOptions tuner;
  std::vector<std::string> paths;        // of seed candidates; empty: all in scratch
};

// What this session does, from the flags, the ledger and the manifest, in this order.
Result<Assignment> assignment_of(const Run& run, const Ledger& ledger, const Options& options) {
  const RunProgress before = progress_of(ledger.rows());
  Assignment plan;
  HONE_TRY(plan.tuner.strategy, strategy_of(options));
  std::string earlier;
  if (before.started) earlier = before.agent.substr(std::min(before.agent.size(), before.agent.find(':') + 1));
  if (plan.tuner.strategy.empty()) plan.tuner.strategy = earlier.empty() ? strategy_names().front() : earlier;
  if (!earlier.empty() && plan.tuner.strategy != earlier)
    return fail(make_error(ErrorKind::usage, "this run was begun with tuner:{}", earlier).with_hint("resume it with the same agent, or make a new run"));
  plan.tuner.seed = options.seed ? *options.seed : before.started ? before.seed : run.manifest.seed;
  if (before.started && plan.tuner.seed != before.seed)
    return fail(make_error(ErrorKind::usage, "this run was begun with seed {}", before.seed).with_hint("leave --seed out, or make a new run"));

  HONE_TRY(const Budget changed, parse_budget(options.budget));
  plan.tuner.budget = (before.started ? before.budget : run.manifest.budget).with(changed);
  if (!plan.tuner.budget.evaluations() && !plan.tuner.budget.seconds()) plan.tuner.budget.limits["evaluations"] = kDefaultEvaluations;
  plan.tuner.target = before.started ? before.target : run.manifest.target;
  if (!options.target.empty()) {
    HONE_TRY(plan.tuner.target, parse_ratio(options.target));
  }

  for (const std::string& each : options.candidates) plan.paths.push_back(fs::absolute(candidate_path(run, each)).lexically_normal().string());
  if (plan.paths.empty() && before.started)
    if (const auto paths = before.started->data.find("candidates"); paths != before.started->data.end() && paths->is_array())
      for (const nlohmann::json& each : *paths)
        if (each.is_string()) plan.paths.push_back(each.get<std::string>());
  if (plan.paths.empty()) {
    HONE_TRY(plan.tuner.seeds, seed_candidates(run));
    return plan;
  }
  for (const std::string& path : plan.paths) {
    HONE_TRY(Candidate candidate, load_candidate(path));
    plan.tuner.seeds.push_back(std::move(candidate));
  }
  return plan;
}

// What both kinds of flow need: the run to themselves, its ledger, and somebody who judges.
struct Opened {
  FileLock lock;
  Ledger ledger;
  RunProgress before;
  Task task;
  std::optional<client::ServiceClient> service;
  std::unique_ptr<Environment> environment;
  std::unique_ptr<Evaluator> evaluator;
};

Result<std::unique_ptr<Opened>> open(const Global& global, const Run& run, const Options& options) {
  auto lock = FileLock::try_acquire(run.lock());
  if (!lock && lock.error().message == "busy")
    return fail(make_error(ErrorKind::usage, "this run is in progress in another process").at({run.lock().string()})
                    .with_hint("watch it with `hone watch --run " + shell_word(run.root.string()) + "`"));
  if (!lock) return fail(std::move(lock).error());
  HONE_TRY(Ledger ledger, open_ledger(run));
  RunProgress before = progress_of(ledger.rows());
  HONE_CHECK(may_begin(run, before, options));
  for (const Error& fault : ledger.faults()) fmt::print(stderr, "{}\n", to_text(fault));
  HONE_TRY(Task task, task_of(run));
  HONE_TRY(auto service, find_service(global, options.remote, run.manifest.remote));
  std::unique_ptr<Environment> environment;
  if (!service) {
    HONE_TRY(environment, open_environment(global, task.device));
  }
  std::unique_ptr<Opened> opened(new Opened{*std::move(lock), std::move(ledger), std::move(before), std::move(task), std::move(service), std::move(environment), nullptr});
  opened->evaluator = opened->service ? make_remote_evaluator(opened->task, *opened->service, &interrupted())
                                      : make_judge_evaluator(opened->task, opened->environment->bench(), &interrupted());
  return opened;
}

Result<TunerOutcome> work(const Global& global, const Run& run, const Options& options, Opened& opened) {
  HONE_TRY(Assignment plan, assignment_of(run, opened.ledger, options));
  plan.tuner.cancel = &interrupted();
  plan.tuner.progress = progress_printer(global);
  HONE_CHECK(opened.ledger.append("run_started", opened.before.elapsed_s,
                                  {{"agent", "tuner:" + plan.tuner.strategy},
                                   {"seed", plan.tuner.seed},
                                   {"budget", plan.tuner.budget},
                                   {"target", plan.tuner.target ? nlohmann::json(*plan.tuner.target) : nlohmann::json()},
                                   {"candidates", plan.paths},
                                   {"resumed", opened.before.started.has_value()}}));
  return tune(run, opened.ledger, plan.tuner, *opened.evaluator);
}

// Of the row that began the run: what a resumed one takes over unless it is said anew.
std::vector<std::string> texts_of(const std::optional<LedgerRow>& row, const char* key, const char* role, const char* member) {
  std::vector<std::string> out;
  if (!row || !row->data.contains(key) || !row->data[key].is_array()) return out;
  for (const nlohmann::json& each : row->data[key]) {
    if (each.is_string()) out.push_back(each.get<std::string>());
    else if (each.is_object() && each.contains(role) && each.contains(member) && each[role].is_string() && each[member].is_string())
      out.push_back(each[role].get<std::string>() + "=" + each[member].get<std::string>());
  }
  return out;
}

Result<FlowOptions> flow_options(const Global& global, const Run& run, const Options& options, const Opened& opened, const std::string& flow) {
  const RunProgress& before = opened.before;
  FlowOptions plan;
  plan.flow = flow;
  const auto agents = !options.agents.empty() ? options.agents : texts_of(before.started, "agents", "role", "spec");
  HONE_TRY(plan.agents, parse_flow_agents(flow, agents));
  plan.seed = options.seed ? *options.seed : before.started ? before.seed : run.manifest.seed;
  HONE_TRY(const Budget changed, parse_budget(options.budget));
  plan.budget = (before.started ? before.budget : run.manifest.budget).with(changed);
  if (plan.budget.empty()) plan.budget.limits["time"] = kDefaultFlowSeconds;
  plan.target = before.started ? before.target : run.manifest.target;
  if (!options.target.empty()) {
    HONE_TRY(plan.target, parse_ratio(options.target));
  }
  if (flow == "goal" && !plan.target) return fail(make_error(ErrorKind::usage, "the flow goal needs a target").with_hint("--target 1.5x: a speedup over the baseline"));
  std::string breakers = options.breakers;
  if (breakers.empty() && before.started && before.started->data.contains("breakers"))
    for (const auto& [name, value] : before.started->data["breakers"].items())
      if (value.is_number_integer()) breakers += (breakers.empty() ? "" : ",") + name + "=" + std::to_string(value.get<int>());
  HONE_TRY(plan.breakers, parse_breakers(breakers));
  if (!options.turn_limit.empty()) {
    HONE_TRY(plan.limits.wall_s, parse_duration(options.turn_limit));
  }
  if (!options.silence.empty()) {
    HONE_TRY(plan.limits.silence_s, parse_duration(options.silence));
  }
  if (!options.grace.empty()) {
    HONE_TRY(plan.grace_s, parse_duration(options.grace));
  }
  if (options.slice) plan.slice = *options.slice;
  HONE_TRY(plan.env, passed_on(options.pass_env));
  plan.confined = options.confined;
  if (options.confined) {
    HONE_TRY(plan.hidden, hidden_from_agents(run, opened.task));
  }
  plan.workloads = static_cast<int>(opened.task.workloads.size());
  HONE_TRY(plan.shown, worktree_files(opened.task));
  plan.cancel = &interrupted();
  plan.progress = progress_printer(global);
  return plan;
}

void print_end(const Global& global, const Run& run, const std::string& reason, int exit, const std::string& note) {
  const auto summary = summarize(run);
  if (!summary) {
    report_error(global, summary.error());
    return;
  }
  if (global.json) {
    nlohmann::json out = status_json(*summary);
    out["exit"] = exit;
    out["state"] = "ended";
    out["reason"] = reason;
    if (!note.empty()) out["notes"].push_back(note);
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("ended: {}; {}\n", reason, spent_text(summary->progress));
  if (const Recorded* best = summary->progress.best())
    fmt::print("best: {:.3f}x {} ({}), row {}\n", *best->experiment.geomean, best->experiment.candidate, params_text(best->experiment.params), best->row);
  else
    fmt::print("best: no candidate passed every workload\n");
  if (!summary->frontier.empty()) {
    const FrontierEntry& front = summary->frontier.front();
    fmt::print("retained: {} {:.3f}x", front.name, front.geomean);
    if (front.geomean_ci) fmt::print(" [{:.3f}, {:.3f}]", front.geomean_ci->low, front.geomean_ci->high);
    fmt::print(", {}\n", (run.frontier() / front.name).string());
  } else {
    fmt::print("retained: nothing\n");
  }
  if (!note.empty()) fmt::print("note: {}\n", note);
}

Result<int> run_verb(const Global& global, const Options& options) {
  HONE_TRY(const Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  HONE_CHECK(check_turn_has_launcher());   // an agent begins no run of its own
  HONE_TRY(const std::unique_ptr<Opened> opened, open(global, run, options));
  HONE_TRY(const std::string flow, flow_of(opened->before, options));
  const std::string again = "hone run --resume --run " + shell_word(run.root.string());
  if (flow != "tuner") {
    if (!options.candidates.empty())
      return fail(make_error(ErrorKind::usage, "--candidate belongs to the flow tuner").with_hint("in other flows a tuner takes every candidate in scratch that has parameters"));
    HONE_TRY(const FlowOptions plan, flow_options(global, run, options, *opened, flow));
    HONE_TRY(const FlowEnd end, run_flow(run, std::move(opened->ledger), plan, *opened->evaluator));
    end_progress();
    print_end(global, run, end.reason, end.exit, end.why);
    if (end.exit != 0) fmt::print(stderr, "go on with: {}\n", again);
    return end.exit;
  }
  HONE_TRY(const TunerOutcome outcome, work(global, run, options, *opened));
  end_progress();
  print_end(global, run, std::string(name_of(outcome.end)), exit_code_of(outcome.end), outcome.note);
  if (outcome.end == RunEnd::cancelled) fmt::print(stderr, "stopped; what is finished is kept. Go on with: {}\n", again);
  if (outcome.end == RunEnd::budget_evaluations) fmt::print(stderr, "the budget ended. Go on with: {} --budget evaluations=N\n", again);
  if (outcome.end == RunEnd::budget_time) fmt::print(stderr, "the budget ended. Go on with: {} --budget time=T\n", again);
  return exit_code_of(outcome.end);
}

}  // namespace

void define_run(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("--run", options->run, "the run directory (default: the one around the current folder)");
  app.add_option("--flow", options->flow, "how agents work together: tuner (default), goal, flame-chase");
  app.add_option("--agent", options->agents,
                 "[ROLE=]SPEC: tuner[:STRATEGY], claude/MODEL:EFFORT, codex/MODEL:EFFORT, command:PATH, acp:PATH; flame-chase has the roles "
                 "first_chaser and second_chaser");
  app.add_option("--budget", options->budget, "duration=T,evaluations=N,turns=N,tokens=N,cost=N; cumulative over --resume (default: evaluations=60, of agents duration=8h)");
  app.add_option("--target", options->target, "end when a retained candidate measured this speedup twice: 1.5x");
  app.add_option("--candidate", options->candidates, "tune this candidate (default: every one in scratch that has parameters)");
  app.add_option("--breakers", options->breakers, "plateau=10,no_progress=3,failures=3: turns in a row after which agents are given up; 0: never");
  app.add_option("--turn-limit", options->turn_limit, "longest turn of an agent (default: 1h)");
  app.add_option("--silence", options->silence, "longest time without output, CPU time or a measurement (default: 10m)");
  app.add_option("--grace", options->grace, "for a turn that has nothing left to win (default: 30s)");
  app.add_option("--slice", options->slice, "evaluations of a tuner's turn (default: 8)")->check(CLI::Range(1, 1000000));
  app.add_option("--pass-env", options->pass_env, "name of a variable of this environment that agents' programs see");
  app.add_flag("--confined", options->confined, "agents' programs see the worktree and their configuration, and write nowhere else");
  app.add_option("--seed", options->seed, "of random choices (default: the run's)")->check(seed_fault);
  app.add_option("--remote", options->remote, "URL of the evaluation service that judges; `local`: here (default: HONE_URL, then the run's)");
  app.add_flag("--resume", options->resume, "go on with a run that ended, was stopped or was killed");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return run_verb(invocation.global, *options); }; });
}

}  // namespace hone::cli
