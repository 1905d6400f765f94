// The process that profilers and sanitizers watch, with nobody watching.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "device/cuda_subject.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kElements = 1003;

WatchSpec spec_of(double timeout_s = 10) {
  WatchSpec spec;
  spec.session.workload = workload_of({vector_of("x", TensorRole::input, kElements), vector_of("y", TensorRole::output, kElements)});
  spec.session.call_timeout_s = timeout_s;
  spec.inputs.name = "random";
  spec.inputs.inputs["x"] = {};
  spec.rehearsals = 1;
  return spec;
}

// What the process leaves, and its exit code.
std::pair<int, json> run(const WatchedCommand& command) {
  ProcessSpec process;
  process.argv = command.argv;
  process.env = command.env;
  const auto outcome = run_process(process);
  EXPECT_TRUE(outcome.has_value() && !outcome->timed_out);
  const auto text = read_file(command.answer);
  return {outcome ? outcome->exit_code : -1, text ? json::parse(*text, nullptr, false) : json()};
}

class CudaWatched : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_ = CudaSubject::make();
    ASSERT_NE(subject_, nullptr);
    if (!subject_->missing().empty()) GTEST_SKIP() << "skipped: " << subject_->missing();
  }
  std::pair<int, json> watch(const std::string& kernel, std::vector<PlanArg> args, double timeout_s = 10) {
    WatchSpec spec = spec_of(timeout_s);
    auto program =
        subject_->program("candidate", plan_of({launch_of(kernel, std::move(args))}, {{"tmp", 4096, true, 1}, {"raw", 100, false, 1}}));
    EXPECT_TRUE(program.has_value());
    if (program) spec.program = *std::move(program);
    const auto command = subject_->device().watched(spec, scratch("watched"));
    EXPECT_TRUE(command.has_value());
    return command ? run(*command) : std::pair<int, json>{};
  }
  std::unique_ptr<CudaSubject> subject_;
};

TEST_F(CudaWatched, LaunchesAndEnds) {
  const auto [exit, answer] = watch("scale", {tensor_arg("x"), tensor_arg("y"), i64_arg(kElements)});
  EXPECT_EQ(exit, 0) << answer;
  EXPECT_EQ(answer, (json{{"ok", nullptr}}));
}

TEST_F(CudaWatched, ItsFaultIsTheAnswer) {
  const auto [exit, answer] = watch("crash", {});
  EXPECT_EQ(exit, 1);
  EXPECT_EQ(answer["error"]["kind"], "illegal_address") << answer;
  const auto [late_exit, late] = watch("forever", {tensor_arg("y")}, 1);
  EXPECT_EQ(late_exit, 1);
  EXPECT_EQ(late["error"]["kind"], "timeout") << late;
}

TEST(CudaWatchedRequests, AreTheSessionsInOneFile) {
  const auto share = share_dir();
  HONE_ASSERT_OK(share);
  const fs::path folder = scratch("requests");
  const auto command = cuda::watched_command({*share / "libexec", "helpers.cubin", 3}, spec_of(), folder);
  HONE_ASSERT_OK(command);
  ASSERT_EQ(command->argv.size(), 4u);
  const auto text = read_file(command->argv[2]);
  HONE_ASSERT_OK(text);
  std::vector<std::string> verbs;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = text->find('\n', begin);
    const json request = json::parse(text->substr(begin, end - begin));
    verbs.push_back(request["do"]);
    if (verbs.size() == 1) {
      EXPECT_EQ(request["plain"], true);
      EXPECT_EQ(request["ordinal"], 3);
    }
    begin = end + 1;
  }
  EXPECT_THAT(verbs, ::testing::ElementsAre("open", "fill", "load", "watched"));
  // Whether there is a GPU or not: the process ends by itself, with an answer.
  const auto [exit, answer] = run(*command);
  EXPECT_EQ(exit, 1);
  EXPECT_TRUE(answer.contains("error")) << answer;
}

}  // namespace
}  // namespace hone::testing
