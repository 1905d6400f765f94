// A small task in memory and programs for the scripted device: y = 2x, rows of x in two groups.
#ifndef HONE_TESTS_JUDGE_TOY_H
#define HONE_TESTS_JUDGE_TOY_H

#include <cstring>
#include <memory>
#include <gtest/gtest.h>
#include <random>

#include "judge/fake_device.h"
#include "judge/workload.h"

namespace hone::testing {

inline constexpr std::int64_t kRows = 8, kColumns = 16, kPitch = 20;
inline constexpr std::int64_t kSpan = (kRows - 1) * kPitch + kColumns;
// Rows [0, 3) are group 0, row 3 is padding, rows [4, 8) are group 1.
inline const std::vector<Region> kGroups = {{"group 0", 0, 3}, {"group 1", 4, 8}};

inline Task toy_task() {
  Task task;
  task.name = "toy";
  task.device = "fake";
  task.sha256 = std::string(64, 'a');
  Workload workload;
  workload.id = "w";
  workload.tensors = {{"x", DType::f32, TensorRole::input, {kRows, kColumns}, {kColumns, 1}},
                      {"y", DType::f32, TensorRole::output, {kRows, kColumns}, {kPitch, 1}}};
  workload.flops = 1e3;
  workload.bytes = 1e3;
  task.workloads = {workload};
  task.input_sets = {{"random", {}, ""}, {"ones", {}, "constant rows"}};
  task.gates["y"] = {"rel_l2", 1e-5, 0};
  task.baselines.emplace_back().name = "base";
  return task;
}

class ToyCode final : public TaskCode {
 public:
  double scale = 1;                     // of the inputs
  Result<> fill(const Workload&, const InputSet& set, std::uint64_t seed, std::uint32_t call,
                const std::vector<HostTensor>& tensors) const override {
    std::mt19937_64 random(seed * 1000003 + call);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (const HostTensor& tensor : tensors) {
      auto* data = reinterpret_cast<float*>(tensor.data);
      for (std::int64_t i = 0; i < tensor.shape.span_elements(); ++i)
        data[i] = static_cast<float>(scale) * (set.name == "ones" ? 1.0f : uniform(random));
    }
    return {};
  }
  Result<Reference> oracle(const Workload& workload, const std::vector<HostTensor>& tensors) const override {
    ++oracle_calls;
    const auto* x = reinterpret_cast<const float*>(tensors.at(0).data);
    Reference out;
    for (const TensorShape& shape : workload.tensors) {
      if (shape.role == TensorRole::input) continue;
      auto& y = out[shape.name];
      y.assign(static_cast<std::size_t>(shape.elements()), 0);
      const auto* before = shape.role == TensorRole::persistent ? reinterpret_cast<const float*>(tensors.at(1).data) : nullptr;
      for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = before ? static_cast<double>(before[i]) + static_cast<double>(x[i]) : 2 * static_cast<double>(x[i]);
    }
    return out;
  }
  Result<Regions> regions(const Workload&, const std::vector<HostTensor>&) const override {
    return Regions{{"y", kGroups}};
  }
  mutable int oracle_calls = 0;
};

inline void honest(FakeCall& call) {
  const auto* x = call.in<float>("x");
  auto* y = call.out<float>("y");
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t i = 0; i < kColumns; ++i) y[row * kPitch + i] = 2 * x[row * kColumns + i];
}

// A job for the toy task; change what a test needs.
struct Toy {
  Task task = toy_task();
  std::shared_ptr<ToyCode> own = std::make_shared<ToyCode>();
  ToyCode& code = *own;
  OracleCode oracle{own, {}};
  FakeDevice device;
  Program base{"base", NativeBaseline{"base", "base.so"}, 0};
  Program candidate{"candidate", Executable{"candidate", {}, {}, {}}, 0};
  Program incumbent{"incumbent", Executable{"incumbent", {}, {}, {}}, 0};

  explicit Toy(std::uint64_t seed = 1) : device(seed) {
    device.script("base", {.time = {.seconds = 1e-3, .jitter = 0.01}, .run = honest, .damage = {}, .describe = "base 1.0", .load_error = {}});
  }
  void script(std::function<void(FakeCall&)> run, double seconds = 1e-3, double jitter = 0.01) {
    FakeProgram program;
    program.time = {.seconds = seconds, .jitter = jitter};
    program.run = std::move(run);
    device.script("candidate", std::move(program));
  }
  WorkloadJob job() {
    WorkloadJob out{.task = task, .workload = task.workloads[0], .code = oracle, .device = device};
    out.baselines = {&base};
    out.candidate = &candidate;
    out.seed = 42;
    out.timing_s = 1;
    out.clock = [this] { return device.clock(); };
    return out;
  }
  WorkloadOutcome judge() {
    auto outcome = judge_workload(job());
    EXPECT_TRUE(outcome.has_value()) << to_text(outcome.error());
    return outcome ? *std::move(outcome) : WorkloadOutcome{};
  }
};

}  // namespace hone::testing

#endif
