// From a candidate to the report of a tool: the tools are scripts in PATH, the process that they watch is another one. Wants
// nvcc, but no GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "base/hash.h"
#include "device/known.h"
#include "profile/profile.h"
#include "profile/sanitize.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using nlohmann::json;

const char* const kNcu = R"(#!/bin/sh
if [ "$1" = --import ]; then cat "$FAKE_DATA/raw.csv"; exit; fi
[ -z "$FAKE_COMPLAINT" ] || { echo "==ERROR== $FAKE_COMPLAINT"; exit 1; }
while [ "$1" != --export ]; do shift; done
printf raw > "$2"
shift 2
exec "$@"
)";
const char* const kSanitizer = R"(#!/bin/sh
while [ "${1#--}" != "$1" ]; do
  [ "$1" != --tool ] || tool=$2
  [ "$1" != --log-file ] || log=$2
  shift 2
done
cat "$FAKE_DATA/$tool.log" > "$log" 2>/dev/null || cat "$FAKE_DATA/clean.log" > "$log"
exec "$@"
)";

class FakeGpu final : public Device {
 public:
  explicit FakeGpu(DeviceInfo info) : info_(std::move(info)) {}
  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<Session>> open(const SessionSpec&) override { return fail(ErrorKind::internal, "nothing runs"); }
  Result<WatchedCommand> watched(const WatchSpec& spec, const fs::path& folder) const override {
    last = spec;
    const fs::path answer = folder / "answer.json";
    return WatchedCommand{
        {"/bin/sh", "-c", program, answer.string()},
        {"PATH=/usr/bin:/bin", "FAKE_DATA=" + (source_dir() / "tests/profile/data").string(), "FAKE_COMPLAINT=" + complaint},
        answer};
  }
  std::string program = R"(echo '{"ok": null}' > "$0")", complaint;
  mutable WatchSpec last;

 private:
  DeviceInfo info_;
};

class Reports : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto nvcc = Toolchain::compiler("nvcc"); !nvcc) {
      GTEST_SKIP() << "skipped: " << nvcc.error().message;
    }
    const auto share = share_dir();
    HONE_ASSERT_OK(share);
    auto sandbox = Sandbox::create(SandboxMode::on, *share / "libexec");
    HONE_ASSERT_OK(sandbox);
    sandbox_.emplace(*std::move(sandbox));
    if (!sandbox_->status().available) {
      GTEST_SKIP() << "skipped: no sandbox here: " << sandbox_->status().refused;
    }
    auto toolchain = Toolchain::create(*sandbox_, scratch("cache"), *share / "include");
    HONE_ASSERT_OK(toolchain);
    toolchain_.emplace(*std::move(toolchain));
    const auto known = make_known_device("sm_90a");
    HONE_ASSERT_OK(known);
    gpu_.emplace((*known)->info());
    auto task = load_task("softmax_cuda");
    HONE_ASSERT_OK(task);
    task_ = *std::move(task);
    path_ = std::getenv("PATH");
    const fs::path bin = scratch("bin");
    for (const auto& [name, text] : {std::pair{"ncu", kNcu}, std::pair{"compute-sanitizer", kSanitizer}}) {
      HONE_ASSERT_OK(write_file_atomic(bin / name, text, 0755));
    }
    ::setenv("PATH", (bin.string() + ":" + path_).c_str(), 1);
    auto candidate = candidate_from_files(
        "written",
        {{"kernel.cu", "__global__ void body(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n"},
         {"plan.cpp",
          "#include <hone/plan.h>\nvoid plan(const hone::Problem& problem, hone::Plan& plan) {\n"
          "  plan.launch(plan.module(\"kernel.cu\"), \"body\", {1}, {32}).args(problem.tensor(\"x\"), problem.tensor(\"y\"));\n}\n"}},
        {});
    HONE_ASSERT_OK(candidate);
    candidate_ = *std::move(candidate);
  }
  void TearDown() override {
    if (!path_.empty()) ::setenv("PATH", path_.c_str(), 1);
  }
  Bench bench() { return {*sandbox_, *toolchain_, *gpu_}; }
  Result<json> profile(const WatchRequest& request = {}) { return profile_report(task_, candidate_, request, bench()); }
  Result<json> sanitize(const std::vector<std::string>& tools, const WatchRequest& request = {}) {
    return sanitize_report(task_, candidate_, tools, request, bench());
  }

  std::optional<Sandbox> sandbox_;
  std::optional<Toolchain> toolchain_;
  std::optional<FakeGpu> gpu_;
  Task task_;
  Candidate candidate_;
  std::string path_;
};

TEST_F(Reports, AProfileHasFiguresAndTheToolsOwnReport) {
  auto report = profile();
  HONE_ASSERT_OK(report);
  EXPECT_EQ((*report)["schema"], "hone.profile/1");
  EXPECT_EQ((*report)["failed"], 0);
  ASSERT_EQ((*report)["workloads"].size(), 1u);
  const json& row = (*report)["workloads"][0];
  EXPECT_EQ(row["id"], "attention") << "the task's first";
  EXPECT_EQ(row["launches"][0]["kernel"], "void gemm<float, 3>(float const*, float*)");
  EXPECT_EQ(row["launches"][0]["figures"]["limiting"]["unit"], "tensor pipe");
  EXPECT_EQ(row["raw"]["hex"], to_hex("raw"));
  EXPECT_EQ(gpu_->last.rehearsals, 1);
  EXPECT_EQ(gpu_->last.session.workload.id, "attention");
  EXPECT_FALSE(gpu_->last.session.task_code.empty());
  EXPECT_EQ(gpu_->last.inputs.name, task_.input_sets.front().name);

  const fs::path folder = scratch("raw") / "reports";
  HONE_ASSERT_OK(keep_raw_reports(*report, folder));
  EXPECT_EQ((*report)["workloads"][0]["raw"], (folder / "attention.ncu-rep").string());
  EXPECT_EQ(read_file(folder / "attention.ncu-rep").value_or(""), "raw");
  const std::string text = profile_text(*report);
  EXPECT_NE(
      text.find(
          "attention: void gemm<float, 3>(float const*, float*) grid (132, 1, 1) block (384, 1, 1) 181.5 us\n  limited by tensor pipe"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("profiled: 1/1 workload on "), std::string::npos) << text;
}

TEST_F(Reports, CountersThatAreKeptEndEverything) {
  gpu_->complaint =
      "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.";
  const auto report = profile();
  HONE_EXPECT_ERROR(report, environment);
  EXPECT_NE(report.error().hint.find("administrators"), std::string::npos);
}

TEST_F(Reports, WhatTheProcessSaysOfItselfIsItsWorkloadsError) {
  gpu_->program =
      R"(echo '{"error": {"kind": "illegal_address", "message": "written: body", "place": null, "hint": null}}' > "$0"; exit 1)";
  const auto crashed = profile();
  HONE_ASSERT_OK(crashed);
  EXPECT_EQ((*crashed)["failed"], 1);
  EXPECT_EQ((*crashed)["workloads"][0]["error"]["kind"], "illegal_address");
  gpu_->program = "kill -9 $$";
  const auto died = profile();
  HONE_ASSERT_OK(died);
  EXPECT_EQ((*died)["workloads"][0]["error"]["kind"], "crash");
  gpu_->program = R"(echo '{"error": {"kind": "environment", "message": "no GPU", "place": null, "hint": null}}' > "$0"; exit 1)";
  HONE_EXPECT_ERROR(profile(), environment);
}

TEST_F(Reports, TimeAndWishesAreKept) {
  gpu_->program = "sleep 60";
  const auto late = profile({.timeout_s = 0.5});
  HONE_ASSERT_OK(late);
  EXPECT_EQ((*late)["workloads"][0]["error"]["kind"], "timeout");
  const std::atomic<bool> cancel = true;
  HONE_EXPECT_ERROR(profile({.cancel = &cancel}), cancelled);
}

TEST_F(Reports, WhatWasFoundUntilTheTimeWasUpIsThere) {
  gpu_->program = "sleep 60";
  const auto found = sanitize({"memcheck"}, {.timeout_s = 0.5});
  HONE_ASSERT_OK(found);
  EXPECT_EQ((*found)["findings"], 2);
  EXPECT_EQ((*found)["workloads"][0]["tools"][0]["incomplete"], "compute-sanitizer did not end within 500 ms");
  EXPECT_NE(sanitize_text(*found).find("  incomplete: compute-sanitizer did not end within 500 ms\n"), std::string::npos) << sanitize_text(*found);
  const auto nothing = sanitize({"initcheck"}, {.timeout_s = 0.5});
  HONE_ASSERT_OK(nothing);
  EXPECT_EQ((*nothing)["workloads"][0]["error"]["kind"], "timeout") << "nothing found is not clean";
}

TEST_F(Reports, FindingsOfAllTools) {
  const auto report = sanitize({});
  HONE_ASSERT_OK(report);
  EXPECT_EQ((*report)["schema"], "hone.sanitize/1");
  ASSERT_EQ((*report)["workloads"].size(), 1u);
  const json& row = (*report)["workloads"][0];
  EXPECT_EQ(row["id"], "small") << "the smallest";
  ASSERT_EQ(row["tools"].size(), 4u);
  EXPECT_EQ(row["tools"][0]["tool"], "memcheck");
  EXPECT_EQ(row["tools"][0]["findings"], 2);
  EXPECT_EQ(row["tools"][3]["findings"], 0) << "initcheck: no sample of that name, so clean";
  EXPECT_EQ((*report)["findings"], 6);
  EXPECT_EQ(row["findings"].size(), 6u);
  EXPECT_EQ(gpu_->last.rehearsals, 0) << "a second call would read what the first has written";
  const std::string text = sanitize_text(*report);
  EXPECT_NE(text.find("kernel.cu:5: error(out_of_bounds): Invalid __global__ write of size 4 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("sanitized: 1/1 workload on "), std::string::npos) << text;
  EXPECT_NE(text.find(", 6 findings\n"), std::string::npos) << text;
}

TEST_F(Reports, ACrashThatAFindingExplainsIsNoFailure) {
  gpu_->program = R"(echo '{"error": {"kind": "crash", "message": "written: body", "place": null, "hint": null}}' > "$0"; exit 1)";
  const auto found = sanitize({"memcheck"});
  HONE_ASSERT_OK(found);
  EXPECT_EQ((*found)["failed"], 0);
  EXPECT_EQ((*found)["findings"], 2);
  const auto unexplained = sanitize({"initcheck"});
  HONE_ASSERT_OK(unexplained);
  EXPECT_EQ((*unexplained)["failed"], 1);
  EXPECT_EQ((*unexplained)["workloads"][0]["error"]["kind"], "crash");
}

TEST_F(Reports, WhatCannotBeAskedFor) {
  HONE_EXPECT_ERROR(sanitize({"leakcheck"}), usage);
  HONE_EXPECT_ERROR(profile({.workloads = {"smal"}}), not_found);
  const auto cpu = load_task("softmax_f32");
  HONE_ASSERT_OK(cpu);
  HONE_EXPECT_ERROR(can_watch(*cpu, "ncu"), contract);
  HONE_EXPECT_ERROR(can_watch(task_, "no-such-tool"), environment);
}

TEST(RawReports, NamesThatAServiceSendsAreNoPaths) {
  for (const char* name : {"../escape", "/etc/passwd", ".hidden", "", "a b"}) {
    json report = {{"workloads", {{{"id", "w"}, {"raw", {{"name", name}, {"hex", "00"}}}}}}};
    HONE_EXPECT_ERROR(keep_raw_reports(report, scratch("escape") / "in"), contract);
  }
  json none = {{"workloads", {{{"id", "w"}, {"raw", nullptr}}}}};
  HONE_ASSERT_OK(keep_raw_reports(none, scratch("none")));
}

}  // namespace
}  // namespace hone::testing
