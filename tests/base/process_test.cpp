#include "base/process.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "testing/testing.h"

namespace hone {
namespace {

ProcessOutcome shell(const std::string& script, ProcessSpec spec = {}) {
  spec.argv = {"/bin/sh", "-c", script};
  auto outcome = run_process(spec);
  EXPECT_TRUE(outcome.has_value());
  return outcome.value_or(ProcessOutcome{});
}

TEST(Process, CapturesBothStreamsAndTheCode) {
  const ProcessOutcome outcome = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST(Process, StdinThenEndOfFile) {
  ProcessSpec spec;
  spec.stdin_text = std::string(300000, 'x');
  EXPECT_EQ(shell("wc -c", spec).out, "300000\n");
}

TEST(Process, TimeoutEndsTheWholeGroup) {
  ProcessSpec spec;
  spec.timeout_s = 0.2;
  const double start = now_s();
  const ProcessOutcome outcome = shell("sleep 100 & sleep 100", spec);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, 9);
  EXPECT_LT(now_s() - start, 5);
}

TEST(Process, LeaderThatLeavesAChildHoldingStdoutEnds) {
  const double start = now_s();
  EXPECT_EQ(shell("sleep 100 & echo done").out, "done\n");
  EXPECT_LT(now_s() - start, 5);
}

TEST(Process, ClosedStreamsDoNotHideTheTimeout) {
  ProcessSpec spec;
  spec.timeout_s = 0.2;
  EXPECT_TRUE(shell("exec >&- 2>&-; sleep 100", spec).timed_out);
}

TEST(Process, OutputIsBoundedAndCounted) {
  ProcessSpec spec;
  spec.stdout_limit = 10;
  const ProcessOutcome outcome = shell("printf 0123456789abcdef", spec);
  EXPECT_EQ(outcome.out, "0123456789");
  EXPECT_EQ(outcome.out_dropped, 6u);
}

TEST(Process, FloodIsKilled) {
  ProcessSpec spec;
  spec.output_kill = 1 << 20;
  spec.timeout_s = 30;
  const ProcessOutcome outcome = shell("yes", spec);
  EXPECT_TRUE(outcome.flooded);
  EXPECT_FALSE(outcome.timed_out);
}

TEST(Process, EnvironmentIsOnlyWhatWasGiven) {
  ProcessSpec spec;
  spec.env = {"A=b"};
  EXPECT_EQ(shell("echo $A; echo ${HOME-none}", spec).out, "b\nnone\n");
}

TEST(Process, MissingProgramIsAnError) {
  ProcessSpec spec;
  spec.argv = {"no-such-program-here"};
  HONE_EXPECT_ERROR(run_process(spec), environment);
}

}  // namespace
}  // namespace hone
