// Compiling and looking without running. CUDA parts are skipped without nvcc; none needs a GPU.
#include "inspect/compile.h"

#include <gtest/gtest.h>

#include <optional>

#include "device/known.h"
#include "inspect/inspect.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using nlohmann::json;

class Look : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto share = share_dir();
    HONE_ASSERT_OK(share);
    libexec_ = *share / "libexec";
    auto sandbox = Sandbox::create(SandboxMode::on, libexec_);
    HONE_ASSERT_OK(sandbox);
    sandbox_.emplace(*std::move(sandbox));
    if (!sandbox_->status().available) {
      GTEST_SKIP() << "no sandbox here: " << sandbox_->status().refused;
    }
    auto toolchain = Toolchain::create(*sandbox_, scratch("cache"), *share / "include");
    HONE_ASSERT_OK(toolchain);
    toolchain_.emplace(*std::move(toolchain));
  }

  void open(const std::string& architecture) {
    auto device = open_target(architecture, *sandbox_, libexec_, {.workers = 1});
    HONE_ASSERT_OK(device);
    device_ = *std::move(device);
  }
  Bench bench() { return {*sandbox_, *toolchain_, *device_}; }

  Task load(const std::string& name) {
    auto task = load_task(name);
    EXPECT_TRUE(task.has_value()) << to_text(task.error());
    return *std::move(task);
  }
  static Candidate written(const std::string& kernel_file, const std::string& kernel, const std::string& plan, const std::string& yaml = "") {
    SourceTree files{{kernel_file, kernel}, {"plan.cpp", "#include <hone/plan.h>\nvoid plan(const hone::Problem& problem, hone::Plan& plan) {\n" + plan + "}\n"}};
    if (!yaml.empty()) files["candidate.yaml"] = yaml;
    auto candidate = candidate_from_files("written", files, {});
    EXPECT_TRUE(candidate.has_value()) << to_text(candidate.error());
    return *std::move(candidate);
  }

  fs::path libexec_;
  std::optional<Sandbox> sandbox_;
  std::optional<Toolchain> toolchain_;
  std::unique_ptr<Device> device_;
};

const char* const kRow = "plan.launch(plan.module(\"kernel.cpp\"), \"row\", {problem.axis(\"M\")}).args(problem.tensor(\"x\"), problem.tensor(\"y\"), problem.axis(\"N\"));\n";
const char* const kRowKernel =
    "#include <hone/kernel.h>\n#include <cstdint>\n"
    "void row(const hone::Block& block, const float* x, float* y, std::int64_t n) {\n"
    "  for (std::int64_t i = 0; i < n; ++i) y[block.index.x * n + i] = x[block.index.x * n + i] * 2;\n}\n";

TEST_F(Look, ACandidateForTheCpuIsReportedByModule) {
  open("cpu");
  const Task task = load("softmax_f32");
  const Candidate candidate = written("kernel.cpp", kRowKernel, kRow);
  const auto compiled = compile_for(task, candidate, {}, bench());
  HONE_ASSERT_OK(compiled);
  const json report = compile_report(task, candidate, *compiled, bench());
  EXPECT_EQ(report["schema"], "hone.compile/1");
  EXPECT_EQ(report["failed"], 0);
  EXPECT_EQ(report["workloads"].size(), 4u);
  EXPECT_EQ(report["modules"].size(), 1u);
  const std::string text = compile_text(report);
  EXPECT_NE(text.find("compiled: 4/4 workloads for cpu, 1 module, g++ "), std::string::npos) << text;

  const auto inspected = inspect_report(task, candidate, *compiled, {}, bench());
  HONE_ASSERT_OK(inspected);
  if (!(*inspected)["skipped"].empty()) {
    GTEST_SKIP() << (*inspected)["skipped"].dump();
  }
  const json& kernel = (*inspected)["modules"][0]["kernels"].at(0);
  EXPECT_EQ(kernel["workloads"].size(), 4u);
  EXPECT_GT(kernel["mix"]["fp32"].get<int>(), 0) << kernel.dump(1);
  EXPECT_GT(kernel["mix"]["global_store"].get<int>(), 0);
  ASSERT_FALSE(kernel["lines"].empty());
  EXPECT_EQ(kernel["lines"][0]["file"], "kernel.cpp");
  EXPECT_NE(kernel["lines"][0]["text"].get<std::string>().find("y[block.index.x"), std::string::npos);
}

TEST_F(Look, ErrorsAreToldOnceWithTheirWorkloads) {
  open("cpu");
  const Task task = load("softmax_f32");
  const Candidate candidate = written("kernel.cpp", std::string(kRowKernel) + "oops;\n", kRow);
  const auto compiled = compile_for(task, candidate, {}, bench());
  HONE_ASSERT_OK(compiled);
  const json report = compile_report(task, candidate, *compiled, bench());
  EXPECT_EQ(report["failed"], 4);
  const auto errors = compile_errors(report);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].first.kind, ErrorKind::compile);
  EXPECT_EQ(errors[0].first.place.file, "kernel.cpp");
  EXPECT_EQ(errors[0].first.place.line, 6);
  EXPECT_EQ(errors[0].second.size(), 4u);
  EXPECT_NE(compile_text(report).find("compiled: 0/4"), std::string::npos);
  HONE_EXPECT_ERROR(compile_for(task, candidate, {"smal"}, bench()), not_found);
}

TEST_F(Look, AKnownDeviceHasLimitsAndRunsNothing) {
  for (const std::string& name : known_architectures()) {
    const auto device = make_known_device(name);
    HONE_ASSERT_OK(device);
    const ProgramLimits& limits = (*device)->info().limits;
    EXPECT_EQ((*device)->info().architecture, name);
    EXPECT_EQ(limits.max_shared_bytes, 227 * 1024);
    EXPECT_EQ(limits.max_threads_per_block, 1024);
    EXPECT_TRUE(limits.tensor_maps);
    HONE_EXPECT_ERROR((*device)->open({}), environment);
  }
  const auto unknown = make_known_device("sm_90");
  HONE_EXPECT_ERROR(unknown, not_found);
  EXPECT_NE(unknown.error().hint.find("sm_90a"), std::string::npos);
}

class LookCuda : public Look {
 protected:
  void SetUp() override {
    Look::SetUp();
    if (IsSkipped()) return;
    if (const auto nvcc = Toolchain::compiler("nvcc"); !nvcc) {
      GTEST_SKIP() << nvcc.error().message;
    }
  }
  static Candidate cuda(const std::string& kernel, const std::string& launch = "") {
    return written("kernel.cu", kernel,
                   "auto module = plan.module(\"kernel.cu\", {{\"SCALE\", 3}});\n"
                   "plan.launch(module, \"scale<4>\", {1}, {256})" + launch + ".args(problem.tensor(\"x\"), problem.tensor(\"y\"));\n",
                   "language: cuda\n");
  }
};

const char* const kScale =
    "template <int N> __global__ void scale(const float* x, float* y) {\n"
    "  __shared__ float part[256];\n"
    "  part[threadIdx.x] = x[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  y[threadIdx.x] = part[255 - threadIdx.x] * SCALE * N;\n"
    "}\n";

TEST_F(LookCuda, AKernelHasARowWithoutAGpu) {
  const Task task = load("softmax_cuda");
  const std::string architecture = target_architecture(task, "", nullptr);
  EXPECT_EQ(architecture, "sm_90a");
  open(architecture);
  const Candidate candidate = cuda(kScale);
  const auto compiled = compile_for(task, candidate, {}, bench());
  HONE_ASSERT_OK(compiled);
  const json report = compile_report(task, candidate, *compiled, bench());
  ASSERT_EQ(report["modules"].size(), 1u) << report.dump(1);
  const json& row = report["modules"][0]["resources"].at(0);
  EXPECT_EQ(row["shared_bytes"], 1024);
  EXPECT_GT(row["registers"].get<int>(), 0);
  EXPECT_EQ(row["workloads"].size(), task.workloads.size());
  const std::string text = compile_text(report);
  EXPECT_NE(text.find("registers  spills  stack   shared  barriers  kernel  [module]"), std::string::npos) << text;
  EXPECT_NE(text.find("[kernel.cu SCALE=3]"), std::string::npos) << text;

  InspectRequest request;
  request.ptx = true;
  const auto inspected = inspect_report(task, candidate, *compiled, request, bench());
  HONE_ASSERT_OK(inspected);
  const json& module = (*inspected)["modules"][0];
  EXPECT_NE(module["ptx"].get<std::string>().find(".target sm_90a"), std::string::npos);
  EXPECT_EQ(module["from"].get<std::string>() == "ptx", !(*inspected)["skipped"].empty()) << "what is missing is said";
  const json& kernel = module["kernels"].at(0);
  for (const char* kind : {"global_load", "global_store", "shared_load", "shared_store", "barrier"}) EXPECT_EQ(kernel["mix"][kind], 1) << kind << kernel.dump(1);
  EXPECT_EQ(kernel["lines"][0]["file"], "kernel.cu");
  EXPECT_NE(inspect_text(*inspected, 10).find("part[255 - threadIdx.x] * SCALE * N"), std::string::npos);
}

TEST_F(LookCuda, ThePlanIsHeldAgainstTheArchitecture) {
  open("sm_90a");
  const Task task = load("softmax_cuda");
  HONE_EXPECT_ERROR(compile_for(task, cuda(kScale, ".shared(300 * 1024)"), {}, bench()), plan);
  const auto wrong = compile_for(task, written("kernel.cpp", kRowKernel, kRow), {}, bench());
  HONE_EXPECT_ERROR(wrong, contract);
}

TEST_F(LookCuda, SpillsAreWarnedOf) {
  open("sm_90a");
  const Task task = load("softmax_cuda");
  const Candidate candidate = cuda(
      "template <int N> __global__ void __launch_bounds__(1024, 2) scale(const float* x, float* y) {\n"
      "  float v[96];\n"
      "  for (int i = 0; i < 96; ++i) v[i] = x[threadIdx.x + i * 1024];\n"
      "  for (int r = 0; r < 8; ++r)\n"
      "    for (int i = 0; i < 96; ++i) v[i] = v[(i * 7 + r) % 96] * v[i] + SCALE;\n"
      "  float sum = 0;\n"
      "  for (int i = 0; i < 96; ++i) sum += v[i] * N;\n"
      "  y[threadIdx.x] = sum;\n}\n");
  const auto compiled = compile_for(task, candidate, {}, bench());
  HONE_ASSERT_OK(compiled);
  const std::string text = compile_text(compile_report(task, candidate, *compiled, bench()));
  EXPECT_NE(text.find("warning: [kernel.cu SCALE=3] "), std::string::npos) << text;
  EXPECT_EQ(text.find("_Z5scale"), std::string::npos) << "kernels are named as in the source: " << text;
}

}  // namespace
}  // namespace hone::testing
