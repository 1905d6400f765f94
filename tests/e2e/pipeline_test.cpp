// From a task to a verified receipt through the real command, as a person would go.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "candidate.h"
#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

nlohmann::json json_of(const CommandResult& result) {
  auto body = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_FALSE(body.is_discarded()) << result.out << result.err;
  return body;
}

// Set here, they must reach neither baseline nor candidate.
const std::map<std::string, std::string> kSlowing{
    {"OPENBLAS_CORETYPE", "Prescott"}, {"OMP_NUM_THREADS", "64"}, {"DNNL_MAX_CPU_ISA", "SSE41"}, {"LD_PRELOAD", ""}};

TEST(Pipeline, BaselinePassesEveryWorkload) {
  const CommandResult text = run_hone({"bench", "baseline", "--task", "softmax_f32", "--samples", "5"});
  EXPECT_EQ(text.exit, 0) << text.out << text.err;
  EXPECT_NE(text.out.find("\npassed: 4/4\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("geomean"), std::string::npos) << text.out;
  EXPECT_FALSE(text.err.empty()) << "progress goes to standard error";
}

TEST(Pipeline, BenchJsonHasTheDesignedKeys) {
  const CommandResult result = run_hone({"bench", candidate("honest").string(), "--task", "softmax_f32", "--samples", "5", "--json", "--quiet"});
  EXPECT_EQ(result.exit, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  const auto body = json_of(result);
  for (const char* key : {"schema", "task", "candidate", "device", "passed", "total", "geomean", "geomean_ci", "decision", "receipt", "workloads"})
    EXPECT_TRUE(body.contains(key)) << key;
  EXPECT_EQ(body["schema"], "hone.bench/1");
  EXPECT_EQ(body["passed"], 4);
  ASSERT_EQ(body["workloads"].size(), 4u);
  for (const char* key : {"id", "verdict", "error", "baseline", "baseline_us", "candidate_us", "ratio", "ratio_ci", "samples", "notes"})
    EXPECT_TRUE(body["workloads"][0].contains(key)) << key;
  EXPECT_EQ(body["workloads"][0]["samples"], 5);

  // What a command prints can be pasted into the next one.
  const CommandResult verified = run_hone({"verify", body["receipt"].get<std::string>(), "--json", "--quiet"});
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
}

TEST(Pipeline, OneFailureTakesTheGeomeanAway) {
  // Right for the first three workloads, wrong where n is 32003.
  const std::string body = std::string(kHonest) + "if (n > 30000) y[n / 2] += 1;";
  const CommandResult result = run_hone({"bench", candidate("partly", {{"kernel.cpp", kernel(body)}}).string(), "--task", "softmax_f32", "--samples", "5", "--json"});
  EXPECT_EQ(result.exit, 1);
  const auto report = json_of(result);
  EXPECT_EQ(report["passed"], 3);
  EXPECT_TRUE(report["geomean"].is_null());
  EXPECT_TRUE(report["geomean_ci"].is_null());
  EXPECT_TRUE(report["decision"].is_null());
}

TEST(Pipeline, VariablesOfTheShellDoNotReachBaselines) {
  const std::vector<std::string> arguments{"bench", "baseline", "--task", "softmax_f32", "--workload", "small", "--samples", "5", "--json", "--quiet"};
  CommandOptions slowed;
  slowed.env = kSlowing;
  const auto plain = json_of(run_hone(arguments)), set = json_of(run_hone(arguments, slowed));
  // Library, version, CPU kernel and threads, as the baseline itself says.
  const auto library = [](const nlohmann::json& body) {
    const auto receipt = nlohmann::json::parse(read_file(body["receipt"].get<std::string>()).value());
    return receipt["workloads"][0]["baseline"]["describe"].get<std::string>();
  };
  EXPECT_FALSE(library(plain).empty());
  EXPECT_EQ(library(plain), library(set)) << "another kernel of the library ran";
}

TEST(Pipeline, InterruptedBenchKeepsWhatIsFinished) {
  CommandOptions options;
  options.binary = find_program("timeout");
  const CommandResult result = run_hone({"--preserve-status", "-s", "INT", "4", hone_binary().string(), "bench", candidate("interrupted").string(), "--task",
                                         "softmax_f32", "--samples", "1000000", "--json"},
                                        options);
  EXPECT_EQ(result.signal, 0) << "it ends cleanly";
  EXPECT_EQ(result.exit, 4) << result.out << result.err;
  EXPECT_FALSE(json_of(result).empty());
  EXPECT_LT(result.seconds, 60);
}

TEST(Pipeline, SandboxOffIsWrittenIntoTheReceipt) {
  const CommandResult result =
      run_hone({"bench", candidate("off").string(), "--task", "softmax_f32", "--workload", "small", "--samples", "5", "--sandbox=off", "--json"});
  EXPECT_EQ(result.exit, 0) << result.out << result.err;
  EXPECT_TRUE(result.err.starts_with("warning: --sandbox=off")) << result.err;
  const auto receipt = nlohmann::json::parse(read_file(json_of(result)["receipt"].get<std::string>()).value());
  EXPECT_EQ(receipt["sandbox"], "off") << receipt.dump().substr(0, 2000);
}

TEST(Pipeline, RunTunesAndKeepsTheBest) {
  const std::string settings = "parameters: {UNROLL: [1, 2]}\n";
  const std::string unrolled = R"("softmax", {problem.axis("M")}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N") + 0 * problem.param("UNROLL")))";
  const fs::path mine = candidate("mine", {{"candidate.yaml", settings}, {"plan.cpp", plan(unrolled)}});
  const fs::path folder = scratch("run") / "first";
  const CommandResult made = run_hone({"init", "--task", "softmax_f32", "--dir", folder.string()});
  ASSERT_EQ(made.exit, 0) << made.out << made.err;
  EXPECT_TRUE(made.out.ends_with("\n" + folder.string() + "\n")) << "the run's absolute path is the last line:\n" << made.out;
  fs::copy(mine, folder / "worktree/candidates/softmax_f32/scratch/mine", fs::copy_options::recursive);
  EXPECT_LT(made.seconds, 30);

  CommandOptions inside;
  inside.cwd = folder / "worktree";   // --run is found by itself
  inside.timeout_s = 400;
  const CommandResult ran = run_hone({"run", "--agent", "tuner", "--budget", "evaluations=2", "--json", "--quiet"}, inside);
  EXPECT_TRUE(ran.exit == 4 || ran.exit == 0) << ran.out << ran.err;
  const CommandResult again = run_hone({"run", "--resume", "--quiet"}, inside);
  EXPECT_EQ(again.exit, ran.exit) << again.out << again.err;

  const auto status = json_of(run_hone({"status", "--json"}, inside));
  EXPECT_TRUE(status.contains("schema"));
  const auto frontier = json_of(run_hone({"frontier", "list", "--json"}, inside));
  EXPECT_EQ(frontier["schema"], "hone.frontier/1");
  const CommandResult report = run_hone({"report"}, inside);
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_NE(report.out.find("softmax_f32"), std::string::npos);
}

}  // namespace
}  // namespace hone::testing
