#include "judge/task_check.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "judge/checker.h"
#include "judge/floor.h"
#include "judge/host_data.h"
#include "judge/mutants.h"
#include "judge/prepare.h"
#include "judge/workload.h"

namespace hone {
namespace {

using json = nlohmann::json;

// Mutants are made and compared by the host: larger results than these, unless all are, are left out.
constexpr std::int64_t kMutantElements = 1 << 25;

class TaskChecker {
 public:
  TaskChecker(const Task& task, Bench bench, const Progress& progress, const std::atomic<bool>* cancel)
      : task_(task), bench_(bench), progress_(progress), cancel_(cancel), seed_(random_seed()) {}

  Result<TaskCheck> run() {
    out_.task = task_.name;
    std::vector<Prepared> baselines;
    for (const BaselineSpec& spec : task_.baselines) {
      if (auto why = left_out(spec)) {
        out_.notes.push_back(*std::move(why));
        continue;
      }
      auto prepared = prepare(task_, spec, task_.workloads, bench_);
      if (!prepared) {
        if (prepared.error().kind != ErrorKind::contract) return fail(prepared.error());
        out_.faults.push_back(prepared.error());
        continue;
      }
      baselines.push_back(*std::move(prepared));
    }
    if (task_.baselines.empty()) fault(fmt::format("task {} has no baseline to compare with", task_.name));
    if (task_.input_sets.size() < 2)
      fault(fmt::format("task {} has no hard input set: random data alone hides truncation, tails and special cases", task_.name));
    HONE_TRY(code_, load_code(task_, bench_));
    for (std::size_t i = 0; i < task_.workloads.size(); ++i) {
      const Workload& workload = task_.workloads[i];
      out_.floors.push_back({workload.id, workload.flops, workload.bytes, floor_seconds(workload, bench_.device.info())});
      if (!(workload.flops > 0) && !(workload.bytes > 0))
        fault(fmt::format("workload {} has neither flops nor bytes: no physical floor can be computed", workload.id));
      std::vector<const Program*> programs;
      for (const Prepared& baseline : baselines)
        if (baseline.programs[i]) programs.push_back(&*baseline.programs[i]);
      HONE_CHECK(check(workload, programs));
    }
    conclude();
    return std::move(out_);
  }

 private:
  void fault(std::string message, std::string hint = {}) {
    out_.faults.push_back(make_error(ErrorKind::contract, "{}", message).at({(task_.folder / "task.yaml").string()}).with_hint(std::move(hint)));
  }

  Result<> check(const Workload& workload, const std::vector<const Program*>& baselines) {
    SessionSpec spec;
    spec.workload = workload;
    spec.memory_bytes = task_.memory_bytes;
    spec.call_timeout_s = task_.call_timeout_s;
    spec.task_code = code_.on_device;
    HONE_TRY(const std::unique_ptr<Session> session, bench_.device.open(spec));
    std::optional<HostData> here;
    if (session->data() == nullptr) here.emplace(workload, *code_.here, *session);
    DeviceData& data = here ? *here : *session->data();
    Checker checker(task_, workload, data, *session);
    const bool small = results_of(workload) <= std::max(kMutantElements, least_results());
    if (!small) out_.left_out.push_back(fmt::format("workload {} is too large for mutants: they are tried on smaller ones", workload.id));
    std::vector<ProgramId> ids;
    for (const Program* baseline : baselines) {
      HONE_TRY(const ProgramId id, load(*session, *baseline));
      ids.push_back(id);
    }
    for (const InputSet& set : task_.input_sets) {
      if (cancel_ != nullptr && cancel_->load()) return fail(ErrorKind::cancelled, "cancelled while {} was checked", task_.name);
      if (progress_) progress_(fmt::format("{}: workload {}: input set {}", task_.name, workload.id, set.name));
      HONE_CHECK(checker.fill({&set, derive_seed(seed_, workload.id + "/" + set.name), 0, "input set " + set.name}));
      ++out_.data_sets;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        checker.forget_worst();
        HONE_TRY(const CallResult call, session->call(ids[i], {}));
        HONE_TRY(const auto refusal, checker.check(ids[i], call));
        out_.baselines.push_back({baselines[i]->name, workload.id, set.name, checker.worst_value(), checker.worst_limit()});
        if (!refusal) continue;
        fault(fmt::format("the oracle refuses baseline {} on workload {}, input set {}: {}: {}", baselines[i]->name, workload.id, set.name,
                          name_of(refusal->error.kind), refusal->error.message),
              "either the oracle or the baseline is wrong, or the gate is too tight for this input set");
        if (exit_code_of(refusal->error.kind) == 1 && verdict_of(refusal->error.kind) == Verdict::error) {
          session->unload(ids[i]);             // it may be dead; a fresh one meets the next data
          HONE_TRY(ids[i], load(*session, *baselines[i]));
        }
      }
      if (small) HONE_CHECK(try_mutants(workload, set, data, checker, *session));
    }
    return {};
  }

  static std::int64_t results_of(const Workload& workload) {
    std::int64_t out = 0;
    for (const TensorShape& shape : workload.tensors)
      if (shape.role != TensorRole::input) out += shape.elements();
    return out;
  }
  std::int64_t least_results() const {
    std::int64_t out = results_of(task_.workloads.front());
    for (const Workload& workload : task_.workloads) out = std::min(out, results_of(workload));
    return out;
  }

  Result<> try_mutants(const Workload& workload, const InputSet& set, DeviceData& data, Checker& checker, Session& session) {
    HONE_TRY(const Reference reference, data.reference());
    HONE_TRY(const Regions* regions, checker.regions());
    const std::vector<HostTensor> inputs = session.inputs();
    for (const TensorShape* shape : checker.results()) {
      const std::vector<double>& right = reference.at(shape->name);
      for (const Mutant& mutant : mutants_of(*shape, valid(*regions, *shape), right, inputs))
        HONE_CHECK(judge_mutant(workload, set, *shape, mutant.name, *regions, mutant.output, right));
    }
    if (&set != &task_.input_sets.front()) return {};
    for (const InputMutation& mutation : input_mutations(task_, workload)) {
      const auto tensor = std::find_if(inputs.begin(), inputs.end(), [&](const HostTensor& each) { return each.shape.name == mutation.tensor; });
      const std::vector<std::byte> kept(tensor->data, tensor->data + tensor->shape.bytes());
      apply(mutation, task_, tensor->shape, tensor->data);
      HONE_CHECK(data.commit());
      HONE_TRY(const Reference wrong, data.reference());
      std::copy(kept.begin(), kept.end(), tensor->data);
      for (const TensorShape* shape : checker.results()) {
        const std::vector<double>& right = reference.at(shape->name);
        if (wrong.at(shape->name) != right) HONE_CHECK(judge_mutant(workload, set, *shape, mutation.name, *regions, wrong.at(shape->name), right));
      }
    }
    return {};
  }

  Result<> judge_mutant(const Workload& workload, const InputSet& set, const TensorShape& shape, const std::string& name,
                    const Regions& regions, const std::vector<double>& output, const std::vector<double>& reference) {
    const auto gate = task_.gates.find(shape.name);
    if (gate == task_.gates.end()) return {};
    const Rows got(shape, std::span<const double>(output)), right(shape, std::span<const double>(reference));
    HostPair pair(got, right);
    HONE_TRY(const Comparison comparison, compare(gate->second, shape, valid(regions, shape), pair));
    out_.mutants.push_back({workload.id, set.name, shape.name, name, comparison.value, comparison.limit, comparison.largest_reference, !comparison.passed()});
    return {};
  }

  // On random data, which is what is timed, every mutant must be refused. Hard sets may be blind to
  // some (a constant row cannot show a swap), but never to zeros.
  void conclude() {
    const std::string& random = task_.input_sets.front().name;
    for (const MutantResult& mutant : out_.mutants) {
      if (mutant.refused) continue;
      if (mutant.mutant == "zeros") {
        fault(fmt::format("an all-zero output {} passes the gate on workload {}, input set {}: largest |reference| is {:.4g}, the limit is {:.4g}",
                          mutant.tensor, mutant.workload, mutant.input_set, mutant.largest_reference, mutant.limit),
              "a gate that zeros satisfy measures nothing: use larger inputs, or a gate relative to the reference");
      } else if (mutant.input_set == random) {
        fault(fmt::format("a wrong output passes the gate on workload {}: {} ({}) scores {:.4g}, the limit is {:.4g}", mutant.workload,
                          mutant.tensor, mutant.mutant, mutant.value, mutant.limit),
              "tighten the gate, or choose inputs that tell the two apart");
      } else {
        out_.notes.push_back(fmt::format("input set {} does not see {} ({}) on workload {}: {:.4g} <= {:.4g}", mutant.input_set,
                                         mutant.tensor, mutant.mutant, mutant.workload, mutant.value, mutant.limit));
      }
    }
  }

  const Task& task_;
  Bench bench_;
  const Progress& progress_;
  const std::atomic<bool>* cancel_;
  const std::uint64_t seed_;
  OracleCode code_;
  TaskCheck out_;
};

double share(const MutantResult& mutant) { return mutant.limit > 0 ? mutant.value / mutant.limit : mutant.value; }

// The mutants of the random set by name, each where it came nearest to passing.
std::vector<MutantResult> nearest_to_passing(const TaskCheck& check) {
  std::vector<MutantResult> out;
  const std::string random = check.mutants.empty() ? "" : check.mutants.front().input_set;
  for (const MutantResult& mutant : check.mutants) {
    if (mutant.input_set != random) continue;
    const auto same = std::find_if(out.begin(), out.end(), [&](const MutantResult& each) { return each.mutant == mutant.mutant && each.tensor == mutant.tensor; });
    if (same == out.end()) out.push_back(mutant);
    else if (!(share(mutant) >= share(*same))) *same = mutant;
  }
  return out;
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.3g}", value) : "unbounded"; }
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

}  // namespace

Result<TaskCheck> check_task(const Task& task, Bench bench, const Progress& progress, const std::atomic<bool>* cancel) {
  HONE_CHECK(runs_on(task, bench.device.info()));
  return TaskChecker(task, bench, progress, cancel).run();
}

json to_json(const TaskCheck& check) {
  json mutants = json::array(), baselines = json::array(), floors = json::array(), faults = json::array();
  for (const MutantResult& mutant : check.mutants)
    mutants.push_back({{"workload", mutant.workload}, {"input_set", mutant.input_set}, {"tensor", mutant.tensor}, {"mutant", mutant.mutant},
                       {"value", finite(mutant.value)}, {"limit", finite(mutant.limit)}, {"largest_reference", finite(mutant.largest_reference)},
                       {"refused", mutant.refused}});
  for (const BaselineResult& baseline : check.baselines)
    baselines.push_back({{"baseline", baseline.baseline}, {"workload", baseline.workload}, {"input_set", baseline.input_set},
                         {"value", finite(baseline.value)}, {"limit", finite(baseline.limit)}});
  for (const FloorResult& floor : check.floors)
    floors.push_back({{"workload", floor.workload}, {"flops", floor.flops}, {"bytes", floor.bytes}, {"floor_us", 1e6 * floor.seconds}});
  for (const Error& error : check.faults) {
    json one;
    to_json(one, error);
    faults.push_back(std::move(one));
  }
  return {{"schema", "hone.task_check/1"}, {"task", check.task}, {"sane", check.sane()}, {"data_sets", check.data_sets},
          {"mutants", std::move(mutants)}, {"baselines", std::move(baselines)}, {"floors", std::move(floors)},
          {"faults", std::move(faults)}, {"notes", check.notes}, {"left_out", check.left_out}};
}

std::string to_text(const TaskCheck& check) {
  std::string out = fmt::format("{}: {} data sets\n\n", check.task, check.data_sets);
  std::map<std::string, const BaselineResult*> worst;
  for (const BaselineResult& baseline : check.baselines) {
    const BaselineResult*& entry = worst[baseline.baseline];
    if (entry == nullptr || baseline.value * entry->limit > entry->value * baseline.limit) entry = &baseline;
  }
  out += fmt::format("{:<52} {:>10} {:>10}  {}\n", "accepted", "worst", "limit", "where");
  for (const auto& [name, baseline] : worst)
    out += fmt::format("{:<52} {:>10} {:>10}  {}, {}\n", "baseline " + name, number(baseline->value), number(baseline->limit), baseline->workload, baseline->input_set);
  out += fmt::format("\n{:<52} {:>10} {:>10}  {}\n", "refused", "least", "limit", "where");
  for (const MutantResult& mutant : nearest_to_passing(check))
    out += fmt::format("{:<52} {:>10} {:>10}  {}{}\n", mutant.tensor + " " + mutant.mutant, number(mutant.value), number(mutant.limit), mutant.workload,
                       mutant.refused ? "" : "  PASSES");
  out += fmt::format("\n{:<20} {:>12} {:>12} {:>12}\n", "physical floor", "MFLOP", "MB", "us");
  for (const FloorResult& floor : check.floors)
    out += fmt::format("{:<20} {:>12.2f} {:>12.2f} {:>12.2f}\n", floor.workload, 1e-6 * floor.flops, 1e-6 * floor.bytes, 1e6 * floor.seconds);
  if (!check.notes.empty()) out += fmt::format("\n{} mutants are invisible to some hard input set (--json lists them)\n", check.notes.size());
  for (const std::string& each : check.left_out) out += "\n" + each + "\n";
  out += check.sane() ? "\nsane\n" : fmt::format("\n{} faults\n", check.faults.size());
  return out;
}

}  // namespace hone
