// CUDA tasks as a GPU would get them, without one: every plan is made and held against an H200's limits, every module and
// oracle is compiled, every kernel is found. Nothing runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "judge/fake_device.h"
#include "judge/prepare.h"
#include "testing/testing.h"
#include "toolchain/headers.h"

namespace hone {
namespace {

class CudaTasks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const fs::path share = *share_dir();
    auto sandbox = Sandbox::create(SandboxMode::on, share / "libexec");
    if (!sandbox || !sandbox->status().available) sandbox = Sandbox::create(SandboxMode::off, share / "libexec");
    sandbox_ = new Sandbox(*std::move(sandbox));
    toolchain_ = new Toolchain(*Toolchain::create(*sandbox_, testing::scratch("cuda-cache"), share / "include"));
  }
  static void TearDownTestSuite() {
    delete toolchain_;
    delete sandbox_;
  }
  void SetUp() override {
    if (const auto nvcc = Toolchain::compiler("nvcc"); !nvcc) GTEST_SKIP() << nvcc.error().message;
  }

  // What an H200 allows; of another architecture when the task wants one.
  void pretend(const std::string& architecture) {
    DeviceInfo& info = device_.change_info();
    info.name = "cuda";
    info.architecture = architecture;
    info.workers = 132;
    info.limits.max_block = {1024, 1024, 64};
    info.limits.max_threads_per_block = 1024;
    info.limits.max_cluster = 8;
    info.limits.max_shared_bytes = 232448;
    info.limits.max_workspace_bytes = std::int64_t{1} << 30;
    info.limits.tensor_maps = true;
  }
  Bench bench() { return {*sandbox_, *toolchain_, device_}; }

  static Sandbox* sandbox_;
  static Toolchain* toolchain_;
  testing::FakeDevice device_;
};
Sandbox* CudaTasks::sandbox_ = nullptr;
Toolchain* CudaTasks::toolchain_ = nullptr;

TEST_F(CudaTasks, BaselinesAndOraclesCompile) {
  int tasks = 0;
  for (const std::string& name : task_names()) {
    const auto task = load_task(name);
    HONE_ASSERT_OK(task);
    if (task->device != "cuda") continue;
    SCOPED_TRACE(name);
    ++tasks;
    pretend(task->architectures.front());
    const auto code = load_code(*task, bench());
    EXPECT_TRUE(code) << to_text(code.error());
    for (const BaselineSpec& baseline : task->baselines) {
      if (left_out(baseline)) continue;
      const auto prepared = prepare(*task, baseline, task->workloads, bench());
      EXPECT_TRUE(prepared) << to_text(prepared.error());
    }
  }
  EXPECT_GE(tasks, 4);
}

// One source, with a macro that the plan sets by A's type.
TEST_F(CudaTasks, TheKernelOfBf16GemmServesFp16Gemm) {
  const auto candidate = load_candidate(*share_dir() / "kernels/bf16_gemm/warp_specialized");
  HONE_ASSERT_OK(candidate);
  for (const auto& [name, half] : {std::pair("bf16_gemm", "0"), std::pair("fp16_gemm", "1")}) {
    SCOPED_TRACE(name);
    const auto task = load_task(name);
    HONE_ASSERT_OK(task);
    pretend("sm_90a");
    const auto prepared = prepare(*candidate, {task->workloads.front()}, bench());
    HONE_ASSERT_OK(prepared);
    HONE_ASSERT_OK(prepared->programs.front());
    const auto& defines = std::get<Executable>(prepared->programs.front()->what).plan.modules.front().defines;
    EXPECT_NE(std::find(defines.begin(), defines.end(), std::pair<std::string, std::string>("HALF", half)), defines.end());
  }
}

TEST_F(CudaTasks, ABaselineWithoutItsHeadersIsLeftOut) {
  const auto task = load_task("grouped_gemm_fp8");
  HONE_ASSERT_OK(task);
  ASSERT_EQ(task->baselines.size(), 2u);
  EXPECT_EQ(left_out(task->baselines[0]), std::nullopt);
  const char* named = std::getenv("HONE_DEEPGEMM");
  const std::string before = named == nullptr ? "" : named;
  ::setenv("HONE_DEEPGEMM", "/nowhere", 1);
  EXPECT_EQ(left_out(task->baselines[1]),
            "baseline deepgemm: HONE_DEEPGEMM is /nowhere, where deep_gemm/include does not hold cute, cutlass, deep_gemm");
  pretend("sm_90a");
  HONE_EXPECT_ERROR(prepare(*task, task->baselines[1], task->workloads, bench()), environment);
  if (named != nullptr) ::setenv("HONE_DEEPGEMM", before.c_str(), 1);
  else ::unsetenv("HONE_DEEPGEMM");
}

// Four modules, one a workload; DeepGEMM's own builds have neither spills nor more registers.
TEST_F(CudaTasks, DeepGemmIsWhatDeepGemmPicks) {
  const auto task = load_task("grouped_gemm_fp8");
  HONE_ASSERT_OK(task);
  const BaselineSpec& deepgemm = task->baselines[1];
  if (const auto why = left_out(deepgemm)) GTEST_SKIP() << *why;
  pretend("sm_90a");
  const auto prepared = prepare(*task, deepgemm, task->workloads, bench());
  HONE_ASSERT_OK(prepared);
  EXPECT_EQ(prepared->facts["headers"]["version"], "0.2.5");
  ASSERT_EQ(prepared->programs.size(), 4u);
  int kernels = 0;
  for (const auto& module : prepared->facts["modules"])
    for (const auto& kernel : module["resources"]) {
      ++kernels;
      EXPECT_EQ(kernel["registers"], 168);
      EXPECT_EQ(kernel["spill_store_bytes"], 0);
    }
  EXPECT_EQ(kernels, 4);
  for (const auto& program : prepared->programs) {
    HONE_ASSERT_OK(program);
    EXPECT_EQ(program->description.substr(0, 19), "sgl-deep-gemm 0.2.5");
    const Plan& plan = std::get<Executable>(program->what).plan;
    ASSERT_EQ(plan.launches.size(), 1u);
    const auto& launch = std::get<PlanLaunch>(plan.launches[0]);
    EXPECT_EQ(launch.grid, (Extent3{132, 1, 1}));
    EXPECT_EQ(launch.block, (Extent3{384, 1, 1}));
    EXPECT_EQ(launch.cluster, (Extent3{2, 1, 1}));
  }
}

}  // namespace
}  // namespace hone
