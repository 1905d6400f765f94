// What people and candidates get wrong: each gives one located line and the designed exit code, as
// text and as JSON.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "base/process.h"
#include "candidate.h"
#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

struct Expected {
  int exit;
  std::string kind;
  std::string says;              // part of the message
  std::string file = {};         // of the place, when there must be one
  int line = 0;                  // likewise
};

// The error of the whole request, or of the first workload.
nlohmann::json error_in(const std::string& out) {
  const auto body = nlohmann::json::parse(out, nullptr, false);
  if (body.is_discarded()) return {};
  if (body.contains("error")) return body["error"];
  return body.contains("workloads") && !body["workloads"].empty() ? body["workloads"][0]["error"] : nlohmann::json();
}

void expect(std::vector<std::string> arguments, const Expected& expected, const CommandOptions& options = {}) {
  arguments.push_back("--json");
  const CommandResult result = run_hone(arguments, options);
  SCOPED_TRACE(result.out.substr(0, 3000) + result.err.substr(0, 3000));
  EXPECT_EQ(result.exit, expected.exit);
  EXPECT_EQ(result.err.find("terminate called"), std::string::npos);
  const nlohmann::json error = error_in(result.out);
  ASSERT_TRUE(error.is_object());
  EXPECT_EQ(error["kind"], expected.kind);
  EXPECT_NE(error["message"].get<std::string>().find(expected.says), std::string::npos) << error["message"];
  EXPECT_EQ(error["message"].get<std::string>().find('\n'), std::string::npos) << "one line";
  if (!expected.file.empty()) {
    ASSERT_TRUE(error["place"].is_object()) << error;
    EXPECT_TRUE(error["place"]["file"].get<std::string>().ends_with(expected.file)) << error["place"];
    if (expected.line != 0) {
      EXPECT_EQ(error["place"]["line"], expected.line) << error["place"];
    }
  }
}

std::vector<std::string> bench(const fs::path& candidate, const std::string& task = "softmax_f32") {
  return {"bench", candidate.string(), "--task", task, "--workload", "small", "--samples", "5", "--quiet"};
}

TEST(BadInput, UnknownTaskSuggestsTheNearest) {
  expect({"task", "show", "softmax_f23"}, {2, "not_found", "softmax_f23"});
  const CommandResult text = run_hone({"task", "show", "softmax_f23"});
  EXPECT_EQ(text.exit, 2);
  EXPECT_EQ(text.out, "");
  EXPECT_TRUE(std::regex_match(first_line(text.err), std::regex(R"(error\(not_found\): .*softmax_f23.*)"))) << text.err;
  EXPECT_NE(text.err.find("softmax_f32"), std::string::npos) << text.err;
}

TEST(BadInput, UnknownCandidate) { expect(bench("/nonexistent/two_pass"), {2, "not_found", "two_pass"}); }

TEST(BadInput, UnknownWorkload) {
  expect({"bench", "baseline", "--task", "softmax_f32", "--workload", "smal"}, {2, "not_found", "smal"});
}

TEST(BadInput, MalformedYaml) {
  const fs::path task = scratch("broken_task");
  fs::copy(source_dir() / "tasks/softmax_f32", task, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  std::string text = read_file(task / "task.yaml").value();
  HONE_ASSERT_OK(write_file_atomic(task / "task.yaml", text + "\nbroken: [1, 2\n"));
  expect({"task", "show", task.string()}, {2, "contract", "", "task.yaml"});
  const std::size_t gate = text.find("\ngate:");
  ASSERT_NE(gate, std::string::npos);
  HONE_ASSERT_OK(write_file_atomic(task / "task.yaml", text.insert(gate, "\ngaet: 1")));
  const CommandResult result = run_hone({"task", "show", task.string()});
  EXPECT_EQ(result.exit, 2);
  EXPECT_TRUE(std::regex_search(first_line(result.err), std::regex(R"(task\.yaml:\d+(:\d+)?: error\(contract\): .*gaet)"))) << result.err;
}

TEST(BadInput, FolderInTheTasksPlace) {
  const fs::path task = scratch("folder_task");
  HONE_ASSERT_OK(make_dirs(task / "task.yaml"));
  expect({"task", "show", task.string()}, {2, "contract", "not a file", "task.yaml"});
}

TEST(BadInput, ReceiptInTheCandidatesPlace) {
  const fs::path file = scratch("receipt") / "e.json";
  HONE_ASSERT_OK(write_file_atomic(file, "{}"));
  expect(bench(file), {2, "not_found", "is a file", "e.json"});
  expect({"verify", file.string()}, {2, "contract", "", "e.json"});
}

TEST(BadInput, MalformedCandidateYaml) {
  expect(bench(candidate("yaml", {{"candidate.yaml", "language: cpp\nflags: [-O2\n"}})), {2, "contract", "", "candidate.yaml"});
}

TEST(BadInput, PlanWithZeroGrid) {
  expect(bench(candidate("zero_grid", {{"plan.cpp", plan(R"("softmax", {0}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N")))")}})),
         {2, "plan", "grid", "zero_grid/plan.cpp", 3});
}

TEST(BadInput, PlanNamesUnknownTensor) {
  expect(bench(candidate("tensor", {{"plan.cpp", plan(R"("softmax", {problem.axis("M")}).args(problem.tensor("z"), problem.tensor("y"), problem.axis("N")))")}})),
         {2, "plan", "z", "tensor/plan.cpp", 3});
}

TEST(BadInput, PlanNamesUnknownAxis) {
  expect(bench(candidate("axis", {{"plan.cpp", plan(R"("softmax", {problem.axis("Q")}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N")))")}})),
         {2, "plan", "Q", "axis/plan.cpp", 3});
}

TEST(BadInput, PlanThatDoesNotCompile) {
  expect(bench(candidate("plan_syntax", {{"plan.cpp", "#include <hone/plan.h>\nvoid plan(const hone::Problem&, hone::Plan&) { oops }\n"}})),
         {1, "compile", "oops", "plan.cpp"});
}

TEST(BadInput, EmptyPlanNamesItsLaunches) {
  expect(bench(candidate("empty", {{"plan.cpp", "#include <hone/plan.h>\nvoid plan(const hone::Problem&, hone::Plan&) {}\n"}})), {2, "plan", "launches"});
}

TEST(BadInput, KernelNameOfNoFunction) {
  expect(bench(candidate("no_kernel", {{"plan.cpp", plan(R"("sotfmax", {problem.axis("M")}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N")))")}})),
         {2, "kernel_name", "sotfmax", "no_kernel/plan.cpp", 3});
}

TEST(BadInput, KernelNameOfSeveralFunctions) {
  const std::string overload = "\nvoid softmax(const hone::Block&, const float*, float*, std::int32_t) {}\n";
  expect(bench(candidate("overloads", {{"kernel.cpp", kernel(kHonest) + overload}})), {2, "kernel_name", "softmax"});
}

TEST(BadInput, ArgumentOfAnotherType) {
  expect(bench(candidate("dtype", {{"plan.cpp", plan(R"("softmax", {problem.axis("M")}).args(problem.tensor("x"), problem.tensor("y"), 1.5f))")}})),
         {2, "kernel_name", "float"});
}

TEST(BadInput, KernelThatDoesNotCompileIsLocated) {
  expect(bench(candidate("syntax", {{"kernel.cpp", "#include <hone/kernel.h>\n\nvoid softmax(const hone::Block&) { undeclared = 1; }\n"}})),
         {1, "compile", "undeclared", "kernel.cpp"});
}

TEST(BadInput, OutputNotWritten) { expect(bench(candidate("nothing", {{"kernel.cpp", kernel("(void)n;")}})), {1, "not_written", ""}); }

TEST(BadInput, NotANumber) {
  expect(bench(candidate("nan", {{"kernel.cpp", kernel(std::string(kHonest) + "y[n - 1] = std::numeric_limits<float>::quiet_NaN();")}})), {1, "non_finite", ""});
}

TEST(BadInput, EndlessLoop) { expect(bench(candidate("endless", {{"kernel.cpp", kernel("for (volatile int i = 0;;) i = i + 1;")}})), {1, "timeout", ""}); }

TEST(BadInput, TenGigabytes) {
  const std::string body = R"(
  const std::size_t bytes = std::size_t{10} << 30;
  char* memory = static_cast<char*>(std::malloc(bytes));
  for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
)";
  expect(bench(candidate("memory", {{"kernel.cpp", kernel(body + std::string(kHonest))}})), {1, "out_of_memory", ""});
}

TEST(BadInput, OneGigabyteOfOutput) {
  const std::string body = R"(
  static char buffer[1 << 20];
  for (int i = 0; i < 1024; ++i) if (write(1, buffer, sizeof buffer) < 0) break;
)";
  const auto arguments = bench(candidate("flood", {{"kernel.cpp", kernel(body + std::string(kHonest))}}));
  expect(arguments, {1, "output_limit", ""});
  EXPECT_LT(run_hone(arguments).max_rss_bytes, std::uint64_t{1} << 30) << "the flood was kept";
}

// As root every file can be read: there the command runs as nobody.
TEST(BadInput, UnreadableFile) {
  const fs::path folder = candidate("unreadable");
  ASSERT_EQ(::chmod((folder / "kernel.cpp").c_str(), 0), 0);
  CommandOptions options;
  std::vector<std::string> arguments = bench(folder);
  if (::geteuid() == 0) {
    for (fs::path path = folder; path != "/tmp" && path.has_relative_path(); path = path.parent_path()) ::chmod(path.c_str(), 0755);
    options.home = scratch("nobody");
    for (fs::path path = options.home; path != "/tmp" && path.has_relative_path(); path = path.parent_path()) ::chmod(path.c_str(), 0777);
    options.cache = options.home / "cache";
    options.binary = find_program("setpriv");
    arguments.insert(arguments.begin(), {"--reuid=65534", "--regid=65534", "--clear-groups", hone_binary().string()});
    const CommandResult reachable = run_hone({"--reuid=65534", "--regid=65534", "--clear-groups", hone_binary().string(), "--version"}, options);
    if (reachable.exit != 0) {
      GTEST_SKIP() << "another user cannot reach the build folder";
    }
  }
  expect(arguments, {3, "io", "kernel.cpp", "kernel.cpp"}, options);
}

// Runs the command with a file system of `options` mounted over `folder`, in a mount namespace.
class Disk : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch("disk");
    wrapper_ = {"--mount"};
    if (::geteuid() != 0) wrapper_ = {"--user", "--map-current-user", "--keep-caps", "--mount"};
    const CommandResult tried = mounted("size=64k", {"--version"}, {});
    if (tried.exit != 0 || tried.out.find("hone") == std::string::npos) {
      GTEST_SKIP() << "this machine does not let tests mount a file system: " << first_line(tried.err);
    }
  }

  CommandResult mounted(const std::string& mount_options, const std::vector<std::string>& arguments, CommandOptions options) {
    options.binary = find_program("unshare");
    std::vector<std::string> all = wrapper_;
    all.insert(all.end(), {"sh", "-c", "mount -t tmpfs -o \"$1\" tmpfs \"$2\" || exit 99; shift 2; exec \"$@\"", "sh", mount_options, folder_.string(),
                           hone_binary().string()});
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_hone(all, options);
  }

  // `variable` is the one that the hint names.
  void expect_io(const std::string& mount_options, const std::string& says, const std::string& variable, CommandOptions options, std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const CommandResult result = mounted(mount_options, arguments, options);
    SCOPED_TRACE(result.out.substr(0, 3000) + result.err.substr(0, 3000));
    EXPECT_EQ(result.exit, 3);
    const nlohmann::json error = error_in(result.out);
    ASSERT_TRUE(error.is_object());
    EXPECT_EQ(error["kind"], "io");
    EXPECT_NE((error["message"].get<std::string>()).find(says), std::string::npos) << error;
    ASSERT_TRUE(error["place"].is_object()) << "where the disk is full";
    EXPECT_TRUE(error["place"]["file"].get<std::string>().starts_with(folder_.string())) << error;
    ASSERT_TRUE(error["hint"].is_string()) << "what to do about it";
    EXPECT_NE(error["hint"].get<std::string>().find(variable), std::string::npos) << error;
  }

  fs::path folder_;
  std::vector<std::string> wrapper_;
};

TEST_F(Disk, ReadOnlyCache) {
  CommandOptions options;
  options.cache = folder_ / "cache";
  expect_io("ro", "Read-only file system", "HONE_HOME", options, bench(candidate("ro")));
}

TEST_F(Disk, FullCache) {
  CommandOptions options;
  options.cache = folder_ / "cache";
  expect_io("size=64k", "No space left", "HONE_HOME", options, bench(candidate("full")));
}

TEST_F(Disk, ReadOnlyTemp) {
  CommandOptions options;
  options.env["TMPDIR"] = folder_;
  expect_io("ro", "Read-only file system", "TMPDIR", options, bench(candidate("ro")));
}

TEST_F(Disk, FullTemp) {
  CommandOptions options;
  options.env["TMPDIR"] = folder_;
  expect_io("size=8k", "No space left", "TMPDIR", options, bench(candidate("full")));
}

TEST_F(Disk, ReadOnlyData) {
  CommandOptions options;
  options.home = folder_;
  expect_io("ro", "Read-only file system", "HONE_HOME", options, {"init", "--task", "softmax_f32", "--name", "r"});
}

TEST_F(Disk, FullDataLeavesNoHalfRun) {
  CommandOptions options;
  options.home = folder_;
  expect_io("size=16k", "No space left", "HONE_HOME", options, {"init", "--task", "softmax_f32", "--name", "r"});
}

TEST(BadInput, FullStandardOutput) {
  CommandOptions options;
  options.binary = "/bin/sh";
  const CommandResult result = run_hone({"-c", "exec \"$0\" task list >/dev/full", hone_binary().string()}, options);
  EXPECT_EQ(result.exit, 3);
  EXPECT_NE(result.err.find("error(io)"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace hone::testing
