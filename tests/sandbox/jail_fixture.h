// A sandbox of this build and programs to run in it.
#ifndef HONE_TESTS_SANDBOX_JAIL_FIXTURE_H
#define HONE_TESTS_SANDBOX_JAIL_FIXTURE_H

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sandbox/sandbox.h"
#include "testing/testing.h"

namespace hone {

inline fs::path libexec() { return share_dir().value_or(fs::path()) / "libexec"; }

class JailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Sandbox::create(SandboxMode::on, libexec());
    ASSERT_TRUE(made.has_value()) << to_text(made.error());
    sandbox_ = std::make_unique<Sandbox>(*made);
    if (!sandbox_->status().available) {
      GTEST_SKIP() << sandbox_->status().refused << ": " << sandbox_->status().reason;
    }
  }

  // The test program with these arguments, at /jail/inside.
  static JailSpec inside(std::vector<std::string> arguments, SyscallPolicy policy = SyscallPolicy::tools) {
    JailSpec spec;
    spec.argv = {"/jail/inside"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.mounts = {{SANDBOX_INSIDE, "/jail/inside"}};
    spec.policy = policy;
    spec.limits.wall_s = 60;
    return spec;
  }

  ProcessOutcome run(const JailSpec& spec) {
    auto outcome = sandbox_->run(spec);
    EXPECT_TRUE(outcome.has_value()) << (outcome ? "" : to_text(outcome.error()));
    return outcome.value_or(ProcessOutcome{});
  }
  std::string say(std::vector<std::string> arguments, SyscallPolicy policy = SyscallPolicy::tools) {
    return run(inside(std::move(arguments), policy)).out;
  }

  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace hone

#endif
