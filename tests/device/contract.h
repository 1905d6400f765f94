// One suite for every device that runs kernel programs: instantiate DeviceContract with a factory of
// subjects. Kernels that a subject provides (n is i64; all tensors f32):
//   scale(x, y, n)        y[i] = 2 x[i], any grid
//   add_into(x, y, n)     y[i] += x[i]
//   half(y, n)            writes only the first half of y, with 1
//   copy(x, y, n)         y[i] = x[i], any grid
//   overrun(y, n)         writes y[0..n] with 1, one element too many
//   nothing()             returns
//   crash()               stores through a null pointer
#ifndef HONE_TESTS_DEVICE_CONTRACT_H
#define HONE_TESTS_DEVICE_CONTRACT_H

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "device/subject.h"
#include "testing/testing.h"

namespace hone::testing {

inline constexpr std::int64_t kElements = 1000;

class DeviceContract : public ::testing::TestWithParam<MakeSubject> {
 protected:
  void SetUp() override {
    subject_ = GetParam()();
    ASSERT_NE(subject_, nullptr);
    if (!subject_->missing().empty()) GTEST_SKIP() << subject_->missing();
    open(workload_of({vector_of("x", TensorRole::input, kElements), vector_of("y", TensorRole::output, kElements)}));
  }
  void open(Workload workload) {
    session_.reset();
    SessionSpec spec;
    spec.workload = std::move(workload);
    spec.memory_bytes = std::uint64_t{256} << 20;
    spec.call_timeout_s = 20;
    auto session = subject_->device().open(spec);
    HONE_ASSERT_OK(session);
    session_ = *std::move(session);
    fill(1.0f);
  }
  // x[i] = first + i; persistent tensors as well.
  void fill(float first) {
    for (HostTensor& tensor : session_->inputs()) {
      auto* values = reinterpret_cast<float*>(tensor.data);
      std::iota(values, values + tensor.shape.span_elements(), first);
    }
    HONE_ASSERT_OK(session_->commit_inputs());
  }
  ProgramId load(const std::string& name, Plan plan) {
    auto program = subject_->program(name, std::move(plan));
    EXPECT_TRUE(program.has_value()) << (program ? "" : to_text(program.error()));
    if (!program) return 0;
    auto id = session_->load(*program);
    EXPECT_TRUE(id.has_value()) << (id ? "" : to_text(id.error()));
    return id ? *id : 0;
  }
  ProgramId load(const std::string& kernel, std::vector<PlanArg> args, Extent3 grid = {1, 1, 1}) {
    return load(kernel, plan_of({launch_of(kernel, std::move(args), grid)}));
  }
  CallResult call(ProgramId id, bool timed = false) {
    auto result = session_->call(id, {timed});
    EXPECT_TRUE(result.has_value()) << (result ? "" : to_text(result.error()));
    return result ? *result : CallResult{};
  }
  std::vector<float> output(ProgramId id, const std::string& tensor = "y") {
    auto bytes = session_->output(id, tensor);
    EXPECT_TRUE(bytes.has_value());
    if (!bytes) return {};
    std::vector<float> values(bytes->size() / sizeof(float));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }
  std::vector<PlanArg> xyn() { return {tensor_arg("x"), tensor_arg("y"), i64_arg(kElements)}; }
  std::vector<PlanArg> yn() { return {tensor_arg("y"), i64_arg(kElements)}; }

  std::unique_ptr<Subject> subject_;
  std::unique_ptr<Session> session_;
};

TEST_P(DeviceContract, SaysWhatItIs) {
  const DeviceInfo& info = subject_->device().info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.architecture.empty());
  EXPECT_GE(info.workers, 1);
  EXPECT_GT(info.cache_bytes, 0u);
  EXPECT_GT(info.peak_flops, 0);
  EXPECT_GT(info.peak_bytes, 0);
  EXPECT_GT(info.limits.max_shared_bytes, 0);
}

TEST_P(DeviceContract, RunsALaunchOverItsGrid) {
  const ProgramId id = load("scale", xyn(), {7, 3, 2});
  for (const bool timed : {false, true}) {
    const CallResult result = call(id, timed);
    ASSERT_FALSE(result.fault) << to_text(*result.fault);
    EXPECT_GT(result.seconds, 0);
    const auto y = output(id);
    for (std::int64_t i = 0; i < kElements; ++i)
      ASSERT_EQ(y[static_cast<std::size_t>(i)], 2 * static_cast<float>(i + 1)) << i;
    HONE_ASSERT_OK(session_->guards(id));
    EXPECT_TRUE(session_->guards(id)->empty());
  }
}

TEST_P(DeviceContract, SeesWhatWasCommittedLast) {
  const ProgramId id = load("scale", xyn());
  for (int round = 0; round < 8; ++round) {
    fill(static_cast<float>(round * 10));
    ASSERT_FALSE(call(id, round % 2 == 0).fault);
    EXPECT_EQ(output(id)[0], static_cast<float>(round * 20)) << round;
  }
  // Filling alone changes nothing.
  auto* x = reinterpret_cast<float*>(session_->inputs()[0].data);
  x[0] = -1;
  ASSERT_FALSE(call(id).fault);
  EXPECT_EQ(output(id)[0], 140.0f);
  EXPECT_TRUE(*session_->inputs_intact());
}

TEST_P(DeviceContract, UnwrittenElementsAreKnown) {
  const ProgramId id = load("half", yn());
  std::vector<std::byte> first_poison;
  for (int round = 0; round < 2; ++round) {
    ASSERT_FALSE(call(id).fault);
    const auto y = output(id);
    for (std::size_t i = 0; i < kElements; ++i) {
      const bool written = i < kElements / 2;
      ASSERT_EQ(session_->is_poison(id, "y", i * sizeof(float)), !written) << i;
      if (!written) {
        ASSERT_TRUE(std::isnan(y[i])) << i;
      }
    }
    const auto bytes = *session_->output(id, "y");
    const std::vector<std::byte> poison(bytes.end() - 4, bytes.end());
    if (round == 1) {
      EXPECT_NE(poison, first_poison) << "the pattern is the same in each call";
    }
    first_poison = poison;
  }
}

TEST_P(DeviceContract, LaunchesFollowOneAnother) {
  // tmp = 2x, y = 2 tmp, by a workspace; many blocks each.
  const ProgramId id =
      load("chain", plan_of({launch_of("scale", {tensor_arg("x"), workspace_arg(0), i64_arg(kElements)}, {50, 1, 1}),
                             launch_of("scale", {workspace_arg(0), tensor_arg("y"), i64_arg(kElements)}, {33, 1, 1})},
                            {{"tmp", kElements * 4, false}}));
  for (int round = 0; round < 5; ++round) {
    ASSERT_FALSE(call(id).fault);
    const auto y = output(id);
    for (std::size_t i = 0; i < kElements; ++i) ASSERT_EQ(y[i], 4 * static_cast<float>(i + 1));
  }
}

TEST_P(DeviceContract, ZeroedWorkspacesAreZeroAndOthersAreNot) {
  for (const bool zeroed : {true, false}) {
    const ProgramId id = load("w", plan_of({launch_of("copy", {workspace_arg(0), tensor_arg("y"), i64_arg(kElements)})},
                                           {{"w", kElements * 4, zeroed}}));
    ASSERT_FALSE(call(id).fault);
    const auto y = output(id);
    for (const float value : y) {
      if (zeroed) {
        ASSERT_EQ(value, 0.0f);
      } else {
        ASSERT_TRUE(std::isnan(value));
      }
    }
    EXPECT_TRUE(session_->guards(id)->empty());
  }
}

TEST_P(DeviceContract, MemsetsAreInSequence) {
  PlanMemset clear;
  clear.tensor = "y";
  clear.value = 0;
  PlanMemset fill_workspace;
  fill_workspace.workspace = 0;
  fill_workspace.value = 0x41;
  const ProgramId id = load("m", plan_of({clear, launch_of("half", yn()), fill_workspace}, {{"w", 1 << 20, false}}));
  ASSERT_FALSE(call(id).fault);
  EXPECT_EQ(output(id)[0], 1.0f);
  EXPECT_EQ(output(id)[kElements - 1], 0.0f);
  EXPECT_TRUE(session_->guards(id)->empty());
}

TEST_P(DeviceContract, PersistentTensorsStartFreshInEachCall) {
  open(workload_of({vector_of("x", TensorRole::input, kElements), vector_of("y", TensorRole::persistent, kElements)}));
  const ProgramId id = load("add_into", xyn());
  for (int round = 0; round < 3; ++round) {
    ASSERT_FALSE(call(id, round == 2).fault);
    EXPECT_EQ(output(id)[4], 10.0f) << round;
    EXPECT_FALSE(session_->is_poison(id, "y", 0));
  }
}

TEST_P(DeviceContract, WritingPastTheEndIsFound) {
  const ProgramId id = load("overrun", yn());
  ASSERT_FALSE(call(id).fault);
  const auto damage = session_->guards(id);
  HONE_ASSERT_OK(damage);
  ASSERT_EQ(damage->size(), 1u);
  EXPECT_EQ((*damage)[0].buffer, "y");
  // A byte that was overwritten may happen to be the canary's.
  EXPECT_GE((*damage)[0].first_byte, kElements * 4);
  EXPECT_GE((*damage)[0].bytes, 1);
  EXPECT_LE((*damage)[0].first_byte + (*damage)[0].bytes, kElements * 4 + 4);
}

TEST_P(DeviceContract, RowsWiderThanTheirElementsHaveGuardsBetween) {
  TensorShape y = vector_of("y", TensorRole::output, 10);
  y.shape = {10, 16};
  y.strides = {32, 1};
  open(workload_of({vector_of("x", TensorRole::input, kElements), y}));
  // A dense store of 10 * 16 elements runs over the gaps between the rows.
  const ProgramId dense = load("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(160)});
  ASSERT_FALSE(call(dense).fault);
  auto damage = session_->guards(dense);
  HONE_ASSERT_OK(damage);
  ASSERT_EQ(damage->size(), 1u);
  EXPECT_EQ((*damage)[0].first_byte, 64);
  EXPECT_GT((*damage)[0].bytes, 4 * 60);
  EXPECT_TRUE(session_->guards(dense)->empty()) << "reported once";
  const ProgramId one_row = load("copy", {tensor_arg("x"), tensor_arg("y"), i64_arg(16)});
  ASSERT_FALSE(call(one_row).fault);
  EXPECT_TRUE(session_->guards(one_row)->empty());
  EXPECT_EQ(output(one_row)[15], 16.0f);
  EXPECT_TRUE(session_->is_poison(one_row, "y", 32 * 4));
}

TEST_P(DeviceContract, ACrashEndsOneProgramOnly) {
  const ProgramId good = load("scale", xyn());
  const ProgramId bad = load("crash", std::vector<PlanArg>{});
  ASSERT_FALSE(call(good).fault);
  for (int round = 0; round < 2; ++round) {   // and stays dead
    const CallResult result = call(bad);
    ASSERT_TRUE(result.fault);
    EXPECT_EQ(result.fault->kind, subject_->null_store_kind()) << to_text(*result.fault);
  }
  EXPECT_FALSE(call(good).fault);
  EXPECT_EQ(output(good)[1], 4.0f);
  const ProgramId again = load("scale", xyn());
  EXPECT_FALSE(call(again).fault);
  session_->unload(bad);
  HONE_EXPECT_ERROR(session_->call(bad, {}), internal);
}

TEST_P(DeviceContract, UnknownNamesAreErrors) {
  const ProgramId id = load("nothing", std::vector<PlanArg>{});
  HONE_EXPECT_ERROR(session_->output(id, "x"), internal);
  HONE_EXPECT_ERROR(session_->output(id, "z"), internal);
  HONE_EXPECT_ERROR(session_->call(id + 1, {}), internal);
  EXPECT_FALSE(session_->is_poison(id, "z", 0));
  EXPECT_FALSE(session_->is_poison(id, "y", 1u << 30));
  EXPECT_EQ(session_->describe(id), "");
}

TEST_P(DeviceContract, AnEmptyProgramLeavesEverythingUnwritten) {
  const ProgramId id = load("empty", plan_of({}));
  ASSERT_FALSE(call(id, true).fault);
  for (std::size_t i = 0; i < kElements; ++i) ASSERT_TRUE(session_->is_poison(id, "y", i * 4));
}

}  // namespace hone::testing

#endif
