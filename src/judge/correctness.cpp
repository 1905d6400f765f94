#include "judge/correctness.h"

#include <algorithm>
#include <numeric>

namespace hone {
namespace {

// Loads, calls once, checks, unloads.
Result<std::optional<Refusal>> check_fresh(const Program& program, Session& session, Checker& checker,
                                           std::string* digest = nullptr) {
  auto id = load(session, program);
  if (!id) {
    // A program that cannot be loaded is the program's fault, unless the device says otherwise.
    if (exit_code_of(id.error().kind) >= 3) return fail(id.error());
    return Refusal{verdict_of(id.error().kind), id.error()};
  }
  HONE_TRY(const CallResult call, session.call(*id, {}));
  HONE_TRY(auto refusal, checker.check(*id, call));
  if (digest != nullptr && !refusal) {
    HONE_TRY(*digest, checker.output_digest(*id));
  }
  session.unload(*id);
  return refusal;
}

constexpr std::size_t kQuickHardSets = 1;

// Full: two random seeds and every hard set. Quick, for a tuner that judges its winner again in
// full: one seed and one hard set, which one is secret.
std::vector<DataSet> data_sets(const WorkloadJob& job) {
  std::vector<DataSet> out;
  const InputSet& random = job.task.input_sets.front();
  const auto add = [&](const InputSet& set, std::uint64_t number, std::string text) {
    out.push_back({&set, derive_seed(job.seed, "correctness/" + set.name, number), 0, std::move(text)});
  };
  const int seeds = job.quick ? 1 : 2;
  for (int i = 1; i <= seeds; ++i)
    add(random, static_cast<std::uint64_t>(i), fmt::format("input set {}, seed {} of {}", random.name, i, seeds));
  std::vector<std::size_t> hard(job.task.input_sets.size() - 1);
  std::iota(hard.begin(), hard.end(), std::size_t{1});
  if (job.quick) {
    for (std::size_t i = hard.size(); i > 1; --i) std::swap(hard[i - 1], hard[derive_seed(job.seed, "hard sets", i) % i]);
    hard.resize(std::min(hard.size(), kQuickHardSets));
  }
  for (const std::size_t i : hard) add(job.task.input_sets[i], 0, "input set " + job.task.input_sets[i].name);
  return out;
}

Result<> check_task(const WorkloadJob& job, Session& session, Checker& checker) {
  HONE_TRY(const auto zeros, checker.compare_zeros());
  bool zeros_pass = !zeros.empty();
  for (const Comparison& comparison : zeros) zeros_pass = zeros_pass && comparison.passed();
  if (zeros_pass)
    return fail(make_error(ErrorKind::contract,
                           "task {}: an all-zero output passes the gate on workload {}: {} is {:.4g}, the limit {:.4g}, and the largest |reference| is {:.4g}",
                           job.task.name, job.workload.id, zeros.front().metric, zeros.front().value, zeros.front().limit,
                           zeros.front().largest_reference)
                    .at({(job.task.folder / "task.yaml").string()})
                    .with_hint("a gate that zeros satisfy measures nothing; see `hone task check`"));
  for (const Program* baseline : job.baselines) {
    HONE_TRY(const auto refusal, check_fresh(*baseline, session, checker));
    if (!refusal) continue;
    Error error = make_error(ErrorKind::contract, "task {}: baseline {} fails workload {}: {}: {}", job.task.name,
                             baseline->name, job.workload.id, name_of(refusal->error.kind), refusal->error.message);
    error.notes = refusal->error.notes;
    return fail(std::move(error));
  }
  return {};
}

}  // namespace

Result<std::optional<Refusal>> check_correctness(const WorkloadJob& job, Session& session, Checker& checker) {
  std::string first_output, first_reference;
  bool first = true;
  for (const DataSet& data : data_sets(job)) {
    if (job.cancelled()) return fail(ErrorKind::cancelled, "cancelled while {} was checked", job.workload.id);
    job.progress(data.text);
    HONE_CHECK(checker.fill(data));
    if (first) HONE_CHECK(check_task(job, session, checker));
    if (job.candidate == nullptr) return std::optional<Refusal>{};   // the baselines are checked by now

    const bool random = data.set == &job.task.input_sets.front();
    std::string output;
    HONE_TRY(auto refusal, check_fresh(*job.candidate, session, checker, random ? &output : nullptr));
    if (first && !job.quick && (!refusal || (refusal->verdict == Verdict::fail && refusal->error.kind != ErrorKind::late_work))) {
      // The same call in another fresh process: a program whose state begins anew must repeat itself.
      HONE_TRY(auto again, check_fresh(*job.candidate, session, checker));
      // Work at the wrong time is not seen each time; it is no accident.
      if (again && again->error.kind == ErrorKind::late_work) return again;
      if (refusal.has_value() != again.has_value()) {
        Refusal flaky{Verdict::flaky, refusal ? refusal->error : again->error};
        flaky.error.notes.push_back(fmt::format("the same call on the same data in two fresh processes: right {}, refused {}",
                                                refusal ? "the second time" : "the first time",
                                                refusal ? "the first time" : "the second time"));
        return flaky;
      }
    }
    if (refusal) return refusal;
    if (random) {
      HONE_TRY(const std::string reference, checker.reference_digest());
      if (first) {
        first_output = std::move(output);
        first_reference = reference;
      } else if (output == first_output && reference != first_reference) {
        return Refusal{Verdict::fail, make_error(ErrorKind::wrong_result, "the output does not follow the input: two seeds gave the same bytes, the references differ")};
      }
    }
    first = false;
  }
  return std::optional<Refusal>{};
}

}  // namespace hone
