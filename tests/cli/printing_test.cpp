#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/startup.h"
#include "cli/verb.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

TEST(CliProgress, ElsewhereThanOnATerminalOneLineAStep) {
  ::testing::internal::CaptureStderr();
  const Progress progress = cli::progress_printer({});
  for (int pairs = 10; pairs < 1000; ++pairs) progress("rmsnorm: workload 2/4: timing " + std::to_string(pairs) + " pairs, 1.2x");
  progress("rmsnorm: workload 3/4: timing 10 pairs");
  progress("evaluation 1/60");
  progress("evaluation 2/60");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "rmsnorm: workload 2/4: timing 10 pairs, 1.2x\nrmsnorm: workload 3/4: timing 10 pairs\nevaluation 1/60\nevaluation 2/60\n");
}

TEST(CliProgress, QuietIsSilent) {
  ::testing::internal::CaptureStderr();
  cli::Global global;
  global.quiet = true;
  cli::progress_printer(global)("anything");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(CliProgress, ControlCharactersDoNotReachTheTerminal) {
  ::testing::internal::CaptureStderr();
  cli::progress_printer({})("a\x1b]0;title\x07\nb");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "a ]0;title  b\n");
}

TEST(CliErrors, AsTextOnStandardErrorAsJsonOnStandardOutput) {
  const Error error = make_error(ErrorKind::contract, "bad\x1b[2J key").at({"task.yaml", 3, 5}).with_hint("fix it");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(cli::report_error({}, error), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "task.yaml:3:5: error(contract): bad [2J key\n  hint: fix it\n");
  cli::Global global;
  global.json = true;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(cli::report_error(global, make_error(ErrorKind::cancelled, "not \xff UTF-8")), 4);
  const auto body = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  EXPECT_EQ(body["schema"], "hone.error/1");
  EXPECT_EQ(body["error"]["kind"], "cancelled");
}

TEST(CliStartup, Workers) {
  EXPECT_EQ(cli::workers_from(nullptr).value(), 0);
  EXPECT_EQ(cli::workers_from("").value(), 0);
  EXPECT_EQ(cli::workers_from("3").value(), 3);
  for (const char* text : {"0", "-1", "x", "3x", " 3", "99999", "99999999999999999999"}) HONE_EXPECT_ERROR(cli::workers_from(text), usage);
}

}  // namespace
}  // namespace hone::testing
