// A release is an installation by copying: the binary and share/hone, anywhere.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/process.h"
#include "candidate.h"
#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

Result<ProcessOutcome> run_plain(std::vector<std::string> argv) {
  ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  spec.timeout_s = 120;
  return run_process(spec);
}

class Installed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const fs::path first = scratch("prefix");
    const fs::path build = hone_binary().parent_path().parent_path();
    const auto installed = run_plain({"cmake", "--install", build.string(), "--prefix", first.string()});
    HONE_ASSERT_OK(installed);
    ASSERT_TRUE(installed->ok()) << installed->err;
    place = scratch("elsewhere") / "some where";
    fs::rename(first, place);
  }
  static fs::path place;
};
fs::path Installed::place;

TEST_F(Installed, HasNoLinksIntoTheSourceTree) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    EXPECT_FALSE(entry.is_symlink()) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 20u);
  for (const char* path : {"bin/hone", "share/hone/libexec/hone-jail", "share/hone/libexec/hone-runner", "share/hone/include/hone/plan.h",
                           "share/hone/plan_main.cpp", "share/hone/schema/task.json", "share/hone/tasks/softmax_f32/task.yaml"})
    EXPECT_TRUE(fs::exists(place / path)) << path;
}

TEST_F(Installed, NeedsOnlyGlibc) {
  if (std::getenv("ASAN_OPTIONS") != nullptr) {
    GTEST_SKIP() << "a sanitizer's run time is shared";
  }
  for (const char* program : {"bin/hone", "share/hone/libexec/hone-jail", "share/hone/libexec/hone-runner"}) {
    const auto needed = run_plain({"objdump", "-p", (place / program).string()});
    HONE_ASSERT_OK(needed);
    std::istringstream lines(needed->out);
    for (std::string word; lines >> word;)
      if (word == "NEEDED") {
        lines >> word;
        EXPECT_TRUE(word.starts_with("libc.so") || word.starts_with("libm.so") || word.starts_with("ld-linux")) << program << " needs " << word;
      }
  }
}

TEST_F(Installed, WorksFromThere) {
  CommandOptions options;
  options.binary = place / "bin/hone";
  const CommandResult doctor = run_hone({"doctor"}, options);
  EXPECT_EQ(doctor.exit, 0) << doctor.out << doctor.err;
  EXPECT_NE(doctor.out.find((place / "share/hone").string()), std::string::npos) << doctor.out;
  const CommandResult tasks = run_hone({"task", "list"}, options);
  EXPECT_EQ(tasks.exit, 0) << tasks.err;
  EXPECT_NE(tasks.out.find("grouped_gemm_f32"), std::string::npos) << tasks.out;
  const CommandResult judged = run_hone({"bench", candidate("installed").string(), "--task", "softmax_f32", "--workload", "small", "--samples", "5"}, options);
  EXPECT_EQ(judged.exit, 0) << judged.out << judged.err;
}

}  // namespace
}  // namespace hone::testing
