#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "agent/strategy.h"
#include "agent/tuner.h"
#include "base/text.h"
#include "cli/remote.h"
#include "run/record.h"
#include "run/summary.h"

namespace hone::cli {
namespace {

constexpr double kDefaultEvaluations = 60;

struct Options {
  std::string run, flow = "tuner", budget, target, remote;
  std::vector<std::string> agents, candidates;
  bool resume = false;
  std::optional<std::uint64_t> seed;
};

// "tuner", "tuner:random". Roles and other agents belong to flows that this version does not have.
Result<std::string> strategy_of(const Options& options) {
  if (options.flow != "tuner")
    return fail(make_error(ErrorKind::usage, "flow {} is not in this version", options.flow).with_hint("this version has the flow tuner"));
  if (options.agents.size() > 1) return fail(make_error(ErrorKind::usage, "the flow tuner takes one agent").with_hint("--agent tuner:ils"));
  if (options.agents.empty()) return std::string();
  const std::string& agent = options.agents[0];
  const std::string name = agent.substr(0, agent.find(':'));
  if (name != "tuner")
    return fail(make_error(ErrorKind::usage, "agent {} is not in this version", agent)
                    .with_hint(nearest(name, {"tuner"}).empty() ? "this version has the agent tuner, which needs no model" : "did you mean tuner?"));
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
  if (before.started && !options.resume)
    return fail(make_error(ErrorKind::usage, "this run has begun: {}", spent_text(before))
                    .with_hint("go on with `hone run --resume --run " + shell_word(run.root.string()) + "`, or make a new run with `hone init`"));
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

Result<TunerOutcome> work(const Global& global, const Run& run, const Options& options) {
  auto lock = FileLock::try_acquire(run.lock());
  if (!lock && lock.error().message == "busy")
    return fail(make_error(ErrorKind::usage, "this run is in progress in another process").at({run.lock().string()})
                    .with_hint("watch it with `hone status --run " + shell_word(run.root.string()) + "`"));
  if (!lock) return fail(std::move(lock).error());
  HONE_TRY(Ledger ledger, open_ledger(run));
  HONE_TRY(Assignment plan, assignment_of(run, ledger, options));
  for (const Error& fault : ledger.faults()) fmt::print(stderr, "{}\n", to_text(fault));
  HONE_TRY(const Task task, task_of(run));
  HONE_TRY(auto service, find_service(global, options.remote, run.manifest.remote));
  std::unique_ptr<Environment> environment;
  if (!service) {
    HONE_TRY(environment, open_environment(global, task.device));
  }
  plan.tuner.cancel = &interrupted();
  plan.tuner.progress = progress_printer(global);
  const auto evaluator = service ? make_remote_evaluator(task, *service, &interrupted()) : make_judge_evaluator(task, environment->bench(), &interrupted());
  const RunProgress before = progress_of(ledger.rows());
  HONE_CHECK(ledger.append("run_started", before.elapsed_s,
                           {{"agent", "tuner:" + plan.tuner.strategy},
                            {"seed", plan.tuner.seed},
                            {"budget", plan.tuner.budget},
                            {"target", plan.tuner.target ? nlohmann::json(*plan.tuner.target) : nlohmann::json()},
                            {"candidates", plan.paths},
                            {"resumed", before.started.has_value()}}));
  return tune(run, ledger, plan.tuner, *evaluator);
}

void print_end(const Global& global, const Run& run, const TunerOutcome& outcome) {
  const auto summary = summarize(run);
  if (!summary) {
    report_error(global, summary.error());
    return;
  }
  if (global.json) {
    nlohmann::json out = status_json(*summary);
    out["exit"] = exit_code_of(outcome.end);
    out["state"] = "ended";
    out["reason"] = name_of(outcome.end);
    if (!outcome.note.empty()) out["notes"].push_back(outcome.note);
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("ended: {}; {}\n", name_of(outcome.end), spent_text(summary->progress));
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
  if (!outcome.note.empty()) fmt::print("note: {}\n", outcome.note);
}

Result<int> run_verb(const Global& global, const Options& options) {
  HONE_TRY(const Run run, find_run(options.run.empty() ? std::nullopt : std::optional<fs::path>(options.run)));
  HONE_TRY(const TunerOutcome outcome, work(global, run, options));
  end_progress();
  print_end(global, run, outcome);
  const std::string again = "hone run --resume --run " + shell_word(run.root.string());
  if (outcome.end == RunEnd::cancelled) fmt::print(stderr, "stopped; what is finished is kept. Go on with: {}\n", again);
  if (outcome.end == RunEnd::budget_evaluations) fmt::print(stderr, "the budget ended. Go on with: {} --budget evaluations=N\n", again);
  if (outcome.end == RunEnd::budget_time) fmt::print(stderr, "the budget ended. Go on with: {} --budget time=T\n", again);
  return exit_code_of(outcome.end);
}

}  // namespace

void define_run(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("--run", options->run, "the run directory (default: the one around the current folder)");
  app.add_option("--flow", options->flow, "how agents work together: tuner")->capture_default_str();
  app.add_option("--agent", options->agents, "tuner[:STRATEGY], strategies ils (default), random, grid");
  app.add_option("--budget", options->budget, "evaluations=N,time=T; cumulative over --resume (default: evaluations=60)");
  app.add_option("--target", options->target, "end when a retained candidate measured this speedup twice: 1.5x");
  app.add_option("--candidate", options->candidates, "tune this candidate (default: every one in scratch that has parameters)");
  app.add_option("--seed", options->seed, "of random choices (default: the run's)")->check(seed_fault);
  app.add_option("--remote", options->remote, "URL of the evaluation service that judges; `local`: here (default: HONE_URL, then the run's)");
  app.add_flag("--resume", options->resume, "go on with a run that ended, was stopped or was killed");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return run_verb(invocation.global, *options); }; });
}

}  // namespace hone::cli
