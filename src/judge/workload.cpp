#include "judge/workload.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "judge/correctness.h"
#include "judge/floor.h"
#include "judge/host_data.h"
#include "judge/timing.h"

namespace hone {
namespace {

// The tensors once, and the plan's workspaces.
std::uint64_t memory_needed(const WorkloadJob& job) {
  std::uint64_t bytes = job.candidate ? job.candidate->workspace_bytes : 0;
  for (const TensorShape& shape : job.workload.tensors) bytes += shape.bytes();
  return bytes;
}

Result<> check_memory(const WorkloadJob& job) {
  const std::uint64_t need = memory_needed(job);
  if (job.memory_bytes && need > *job.memory_bytes)
    return fail(make_error(ErrorKind::out_of_memory, "workload {} needs {} for its tensors and workspaces, the limit is {}",
                           job.workload.id, format_bytes(need), format_bytes(*job.memory_bytes))
                    .with_hint("a larger --memory, or --workload to leave it out"));
  if (job.candidate && job.candidate->workspace_bytes > job.task.memory_bytes)
    return fail(ErrorKind::out_of_memory, "the plan's workspaces need {}, the task allows {}",
                format_bytes(job.candidate->workspace_bytes), format_bytes(job.task.memory_bytes));
  return {};
}

double median_of(const std::vector<RawPair>& raw, double RawPair::*side) {
  std::vector<double> values;
  for (const RawPair& pair : raw) values.push_back(pair.*side);
  return median(std::move(values));
}

// Fills in the report's numbers from the raw pairs.
void summarise(const WorkloadJob& job, Timing timing, WorkloadOutcome& out) {
  WorkloadReport& report = out.report;
  const double begin = now_s();
  report.baseline = job.baselines[timing.baseline]->name;
  report.warmup_s = timing.warmup_s;
  report.samples = static_cast<int>(timing.raw.size());
  report.baseline_text = timing.baseline_text;
  out.facts["baseline"] = {{"name", report.baseline}, {"describe", timing.baseline_text}};
  for (std::size_t i = 0; i < timing.choice_s.size(); ++i) {
    out.facts["baselines_s"][job.baselines[i]->name] = timing.choice_s[i];
    if (i != timing.baseline) report.notes.push_back(fmt::format("baseline {} took {:.1f} us", job.baselines[i]->name, 1e6 * timing.choice_s[i]));
  }
  out.facts["stop"] = name_of(timing.stop);
  out.facts["oracle_samples"] = timing.oracle_samples;

  const StoppingPolicy policy = stopping_policy(job);
  if (!timing.control.x.empty()) {
    report.control_samples = static_cast<int>(timing.control.x.size());
    out.facts["control"] = timing.control.x;
    if (report.control_samples >= policy.min_pairs) {
      const Estimate control = estimate(timing.control, derive_seed(job.seed, "control"));
      report.control_ci = ratio_interval(control, 0.95);
      if (report.control_ci->low > 1 || report.control_ci->high < 1)
        report.notes.push_back(fmt::format("A/A control: the baseline against itself gave [{:.4f}, {:.4f}]",
                                           report.control_ci->low, report.control_ci->high));
    }
  }
  if (!timing.raw.empty()) {
    report.baseline_s = median_of(timing.raw, &RawPair::baseline);
    report.candidate_s = median_of(timing.raw, &RawPair::candidate);
    report.ratio = std::exp(interquartile_mean(timing.ratio.x));
    if (!timing.incumbent_ratio.x.empty()) report.incumbent_ratio = std::exp(interquartile_mean(timing.incumbent_ratio.x));
  }
  if (report.samples >= policy.min_pairs) {
    out.ratio = estimate(timing.ratio, derive_seed(job.seed, "interval"));
    report.ratio_ci = ratio_interval(*out.ratio, 0.95);
    const Interval* deciding = &*report.ratio_ci;
    if (!timing.incumbent_ratio.x.empty()) {
      out.incumbent_ratio = estimate(timing.incumbent_ratio, derive_seed(job.seed, "interval"));
      report.incumbent_ci = ratio_interval(*out.incumbent_ratio, 0.95);
      deciding = &*report.incumbent_ci;
      if (deciding->high < 1 - policy.min_effect) report.notes.push_back("slower than the incumbent here");
    } else if (deciding->high < 1 - policy.min_effect) {
      report.notes.push_back(job.candidate != nullptr ? "slower than the baseline here" : "the baseline against itself: noise of this machine");
    }
    if ((timing.stop == Stop::budget || timing.stop == Stop::max_pairs) && halfwidth(*deciding) > policy.target_halfwidth)
      report.notes.push_back(fmt::format("interval +-{:.2f}% at the end ({}), aimed at +-{:.2f}%", 100 * halfwidth(*deciding),
                                         name_of(timing.stop), 100 * policy.target_halfwidth));
  } else if (timing.stop != Stop::no) {
    report.notes.push_back(fmt::format("{} samples, an interval needs {}", report.samples, policy.min_pairs));
  }
  if (report.candidate_s && timing.extra_cpu_s > 0.05 * *report.candidate_s * report.samples)
    report.notes.push_back(fmt::format("{:.1f} ms of CPU time after the reported end", 1e3 * timing.extra_cpu_s));
  report.raw = std::move(timing.raw);
  out.statistics_s = timing.statistics_s + (now_s() - begin);
}

// What the device saw around the timed calls stands in the receipt; what may have changed a time is said.
void note_conditions(const nlohmann::json& conditions, WorkloadOutcome& out) {
  if (conditions.is_null()) return;
  out.facts["conditions"] = conditions;
  if (const auto throttle = conditions.find("throttle"); throttle != conditions.end() && !throttle->empty())
    out.report.notes.push_back(fmt::format("the device was held back: {}", fmt::join(throttle->get<std::vector<std::string>>(), ", ")));
  if (const auto processes = conditions.find("processes"); processes != conditions.end() && processes->at("most").get<int>() > 1)
    out.report.notes.push_back("another process was on the device");
}

// What makes a measurement worth another one; empty: nothing. The power cap is no accident: large kernels run at it, and
// both sides do.
std::string disturbance(const nlohmann::json& facts) {
  const auto conditions = facts.find("conditions");
  if (conditions == facts.end()) return {};
  if (const auto processes = conditions->find("processes"); processes != conditions->end() && processes->at("most").get<int>() > 1)
    return "another process was on the device";
  if (const auto throttle = conditions->find("throttle"); throttle != conditions->end())
    for (const auto& reason : *throttle)
      if (const auto text = reason.get<std::string>(); text.starts_with("hardware") || text.ends_with("thermal"))
        return "the device was held back: " + text;
  return {};
}

void refuse(WorkloadReport& report, Verdict verdict, Error error) {
  report.verdict = verdict;
  report.error = std::move(error);
}

// The steps that may end early. A Result error is handled by the caller.
Result<> run(const WorkloadJob& job, WorkloadOutcome& out) {
  HONE_CHECK(check_memory(job));
  SessionSpec spec;
  spec.workload = job.workload;
  spec.memory_bytes = job.task.memory_bytes;
  if (job.memory_bytes) spec.memory_bytes = std::min(spec.memory_bytes, *job.memory_bytes - memory_needed(job));
  spec.call_timeout_s = job.task.call_timeout_s;
  spec.task_code = job.code.on_device;
  HONE_TRY(const std::unique_ptr<Session> session, job.device.open(spec));
  std::optional<HostData> here;
  if (session->data() == nullptr) here.emplace(job.workload, *job.code.here, *session);
  Checker checker(job.task, job.workload, here ? *here : *session->data(), *session);

  const double begin = now_s();
  auto refusal = check_correctness(job, *session, checker);
  const double checked = now_s();
  out.facts["seconds"]["correctness"] = checked - begin;
  out.report.gate_value = checker.worst_value();
  out.report.gate_limit = checker.worst_limit();
  if (!refusal) return fail(refusal.error());
  if (*refusal) {
    refuse(out.report, (*refusal)->verdict, (*refusal)->error);
    return {};
  }

  auto timing = time_workload(job, *session, checker);
  out.timing_s = now_s() - checked;
  out.facts["seconds"]["timing"] = out.timing_s;
  out.report.gate_value = checker.worst_value();
  out.report.gate_limit = checker.worst_limit();
  if (!timing) return fail(timing.error());
  const std::optional<Refusal> timed_refusal = timing->refusal;
  const bool cancelled = timing->cancelled;
  summarise(job, *std::move(timing), out);
  note_conditions(session->conditions(), out);
  if (timed_refusal) {
    out.ratio.reset();
    out.incumbent_ratio.reset();
    out.report.ratio.reset();
    out.report.ratio_ci.reset();
    out.report.incumbent_ratio.reset();
    out.report.incumbent_ci.reset();
    refuse(out.report, timed_refusal->verdict, timed_refusal->error);
    return {};
  }
  if (cancelled) return fail(ErrorKind::cancelled, "cancelled after {} samples", out.report.samples);
  if (auto impossible = below_floor(out.report)) {
    refuse(out.report, Verdict::fail, std::move(*impossible));
    return {};
  }
  out.report.verdict = Verdict::pass;
  return {};
}

}  // namespace

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t number) {
  std::uint64_t z = seed;
  const auto mix = [&z](std::uint64_t value) {
    z = (z ^ value) + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  };
  for (const char c : purpose) mix(static_cast<unsigned char>(c));
  mix(number);
  return z;
}

namespace {

Result<WorkloadOutcome> judge_once(const WorkloadJob& job) {
  WorkloadOutcome out;
  out.report.id = job.workload.id;
  out.report.floor_s = floor_seconds(job.workload, job.device.info());
  out.facts = {{"id", job.workload.id}, {"seed", std::to_string(job.seed)}, {"seconds", nlohmann::json::object()}};
  if (auto done = run(job, out); !done) {
    if (done.error().kind == ErrorKind::contract) return fail(done.error());
    // A program may be found out between two calls, by whatever the session is asked next.
    refuse(out.report, verdict_of(done.error().kind), done.error());
    out.ratio.reset();
    out.incumbent_ratio.reset();
  }
  return out;
}

}  // namespace

Result<WorkloadOutcome> judge_workload(const WorkloadJob& job) {
  HONE_TRY(WorkloadOutcome out, judge_once(job));
  const std::string why = disturbance(out.facts);
  if (why.empty() || job.quick || out.report.verdict != Verdict::pass || job.cancelled()) return out;
  job.progress(why + ": measuring again");
  WorkloadJob again = job;
  again.seed = derive_seed(job.seed, "again");
  HONE_TRY(WorkloadOutcome second, judge_once(again));
  // Ctrl-C or a fault of the machine takes nothing from what was measured.
  if (second.report.error && exit_code_of(second.report.error->kind) >= 3) {
    out.report.notes.push_back(fmt::format("measuring again ended early: {}", second.report.error->message));
    out.statistics_s += second.statistics_s;
    out.timing_s += second.timing_s;
    return out;
  }
  second.report.notes.insert(second.report.notes.begin(), "measured twice: at first " + why);
  second.facts["disturbed"] = std::move(out.facts);
  second.statistics_s += out.statistics_s;
  second.timing_s += out.timing_s;
  return second;
}

}  // namespace hone
