#include "judge/judge.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "judge/body.h"
#include "judge/conclude.h"
#include "judge/prepare.h"
#include "judge/workload.h"

namespace hone {
namespace {

using json = nlohmann::json;

constexpr double kQuickTiming_s = 0.35;    // a workload's timed pairs in quick mode

Result<std::vector<Workload>> select(const Task& task, const std::vector<std::string>& ids) {
  if (ids.empty()) return task.workloads;
  for (const std::string& id : ids) {
    if (task.find(id) != nullptr) continue;
    std::vector<std::string> known;
    for (const Workload& workload : task.workloads) known.push_back(workload.id);
    const std::string near = nearest(id, known);
    return fail(make_error(ErrorKind::not_found, "task {} has no workload {}", task.name, id)
                    .with_hint(near.empty() ? fmt::format("it has {}", fmt::join(known, ", ")) : fmt::format("did you mean {}?", near)));
  }
  std::vector<Workload> out;
  for (const Workload& workload : task.workloads)
    if (std::find(ids.begin(), ids.end(), workload.id) != ids.end()) out.push_back(workload);
  return out;
}

// Everything that runs, compiled: a program by side and workload.
struct Sides {
  std::vector<Prepared> baselines;
  std::vector<std::string> left_out;       // baselines that this machine cannot have, and why
  std::optional<Prepared> candidate, incumbent;

  json facts() const {
    json out = {{"baselines", json::object()}};
    for (const Prepared& baseline : baselines) out["baselines"][baseline.name] = baseline.facts;
    if (candidate) out["candidate"] = candidate->facts;
    if (incumbent) out["incumbent"] = incumbent->facts;
    return out;
  }
  double sum(double Prepared::*part) const {
    double out = 0;
    for (const Prepared& baseline : baselines) out += baseline.*part;
    if (candidate) out += *candidate.*part;
    if (incumbent) out += *incumbent.*part;
    return out;
  }
};

Result<Sides> prepare_all(const Task& task, const JudgeRequest& request, const std::vector<Workload>& workloads, Bench bench) {
  Sides out;
  if (task.baselines.empty()) return fail(ErrorKind::contract, "task {} has no baseline", task.name);
  // The candidate first: its plan is refused before anything is compiled.
  if (request.candidate) {
    HONE_TRY(out.candidate, prepare(*request.candidate, workloads, bench));
  }
  if (request.incumbent) {
    auto incumbent = prepare(*request.incumbent, workloads, bench);
    if (!incumbent) {
      Error error = incumbent.error();
      error.message = fmt::format("incumbent {}: {}", request.incumbent->name, error.message);
      return fail(std::move(error));
    }
    out.incumbent = *std::move(incumbent);
  }
  for (const BaselineSpec& baseline : task.baselines) {
    if (auto why = left_out(baseline)) {
      out.left_out.push_back(*std::move(why));
      continue;
    }
    HONE_TRY(Prepared prepared, prepare(task, baseline, workloads, bench));
    out.baselines.push_back(std::move(prepared));
  }
  if (out.baselines.empty()) return fail(ErrorKind::environment, "task {} has no baseline here: {}", task.name, fmt::join(out.left_out, "; "));
  return out;
}

Error cancelled_error(const Workload& workload) {
  return make_error(ErrorKind::cancelled, "cancelled before workload {} was judged", workload.id);
}

}  // namespace

Result<bool> compile_all(const Task& task, const JudgeRequest& request, Bench bench) {
  HONE_TRY(const std::vector<Workload> workloads, select(task, request.workloads));
  HONE_TRY(const Sides sides, prepare_all(task, request, workloads, bench));
  HONE_CHECK(load_code(task, bench));
  return !sides.candidate || std::ranges::any_of(sides.candidate->programs, [](const auto& each) { return each.has_value(); });
}

Result<Report> judge(const Task& task, const JudgeRequest& request, Bench bench) {
  const double start = now_s();
  const auto say = [&](const std::string& text) {
    if (request.progress) request.progress(task.name + ": " + text);
  };
  HONE_CHECK(runs_on(task, bench.device.info()));
  if (request.samples && *request.samples < 1) return fail(ErrorKind::usage, "samples is {}, it must be at least 1", *request.samples);
  if (request.time_budget_s && !(*request.time_budget_s > 0)) return fail(ErrorKind::usage, "the time budget must be above 0");
  HONE_TRY(const std::vector<Workload> workloads, select(task, request.workloads));

  say("compiling");
  HONE_TRY(const Sides sides, prepare_all(task, request, workloads, bench));
  HONE_TRY(const OracleCode code, load_code(task, bench));
  const double prepared = now_s();

  Report report;
  report.task = task.name;
  report.candidate = request.candidate ? request.candidate->name : "baseline";
  report.device = bench.device.info().name;
  report.total = static_cast<int>(workloads.size());
  report.of_task = static_cast<int>(task.workloads.size());
  report.notes = sides.left_out;
  const std::uint64_t seed = request.seed.value_or(random_seed());

  std::vector<WorkloadOutcome> outcomes;
  double judged = 0, statistics_s = 0, timed_s = 0;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const double left = static_cast<double>(workloads.size() - i);
    const auto progress = [&](const std::string& text) {
      say(fmt::format("workload {}/{} {}: {}", i + 1, workloads.size(), workloads[i].id, text));
    };
    WorkloadOutcome outcome;
    outcome.report.id = workloads[i].id;
    if (request.cancel != nullptr && request.cancel->load()) {
      report.cancelled = true;
      outcome.report.error = cancelled_error(workloads[i]);
    } else if (sides.candidate && !sides.candidate->programs[i]) {
      outcome.report.error = sides.candidate->programs[i].error();
    } else if (sides.incumbent && !sides.incumbent->programs[i]) {
      return fail(sides.incumbent->programs[i].error());
    } else {
      WorkloadJob job{.task = task, .workload = workloads[i], .code = code, .device = bench.device};
      for (const Prepared& baseline : sides.baselines) {
        if (!baseline.programs[i]) return fail(baseline.programs[i].error());
        const auto counts = request.baselines.find(workloads[i].id);
        if (counts == request.baselines.end() || counts->second == baseline.programs[i]->name)
          job.baselines.push_back(&*baseline.programs[i]);
      }
      if (job.baselines.empty())
        return fail(ErrorKind::environment, "there is no baseline {} for workload {}{}{}", request.baselines.at(workloads[i].id), workloads[i].id,
                    sides.left_out.empty() ? "" : ": ", fmt::join(sides.left_out, "; "));
      if (sides.candidate) job.candidate = &*sides.candidate->programs[i];
      if (sides.incumbent) job.incumbent = &*sides.incumbent->programs[i];
      job.seed = derive_seed(seed, workloads[i].id);
      job.timing_s = request.quick ? std::min(task.timing.budget_s, kQuickTiming_s) : task.timing.budget_s;
      if (request.time_budget_s) {
        job.timing_s = std::max(0.0, *request.time_budget_s - timed_s) / left;
        job.hard_budget = true;
      }
      job.samples = request.samples;
      job.memory_bytes = request.memory_bytes;
      job.quick = request.quick;
      job.cancel = request.cancel;
      job.progress = progress;
      const double begin = now_s();
      HONE_TRY(outcome, judge_workload(job));
      judged += now_s() - begin;
      statistics_s += outcome.statistics_s;
      timed_s += outcome.timing_s;
    }
    if (outcome.report.verdict == Verdict::pass) ++report.passed;
    if (outcome.report.error && outcome.report.error->kind == ErrorKind::cancelled) report.cancelled = true;
    if (request.judged) request.judged(outcome.report);
    outcomes.push_back(std::move(outcome));
  }
  // Nothing but faults of the machine: that is the answer.
  const auto machine = [](const WorkloadOutcome& outcome) {
    return outcome.report.error && exit_code_of(outcome.report.error->kind) == 3;
  };
  if (!outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(), machine)) return fail(*outcomes.front().report.error);

  const double begin = now_s();
  const bool decides = request.candidate && !request.quick;
  conclude(outcomes, task.timing.min_effect, request.incumbent.has_value(), decides, report);
  BodyParts parts{.task = task, .request = request, .bench = bench, .seed = seed, .binaries = sides.facts()};
  for (WorkloadOutcome& outcome : outcomes) {
    parts.workloads.push_back(std::move(outcome.facts));
    report.workloads.push_back(std::move(outcome.report));
  }
  statistics_s += now_s() - begin;
  // own: what judging costs besides evaluating plans, compilers, correctness and the timed rounds.
  const double total = now_s() - start;
  parts.seconds = {{"plan", sides.sum(&Prepared::plan_s)}, {"compile", sides.sum(&Prepared::compile_s)},
                   {"prepare", prepared - start}, {"workloads", judged}, {"statistics", statistics_s}, {"total", total},
                   {"own", total - judged + statistics_s - sides.sum(&Prepared::compile_s)}};
  report.receipt_body = receipt_body(report, std::move(parts));
  return report;
}

}  // namespace hone
