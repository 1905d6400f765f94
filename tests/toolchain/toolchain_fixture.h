// A toolchain with a jail and an empty cache of its own.
#ifndef HONE_TESTS_TOOLCHAIN_FIXTURE_H
#define HONE_TESTS_TOOLCHAIN_FIXTURE_H

#include <gtest/gtest.h>

#include <optional>

#include "testing/testing.h"
#include "toolchain/toolchain.h"

namespace hone::testing {

class ToolchainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto share = share_dir();
    HONE_ASSERT_OK(share);
    auto sandbox = Sandbox::create(SandboxMode::on, *share / "libexec");
    HONE_ASSERT_OK(sandbox);
    sandbox_.emplace(*std::move(sandbox));
    if (!sandbox_->status().available) {
      GTEST_SKIP() << "no sandbox here: " << sandbox_->status().refused;
    }
    cache_ = scratch("cache");
    include_ = *share / "include";
    auto toolchain = Toolchain::create(*sandbox_, cache_, include_);
    HONE_ASSERT_OK(toolchain);
    toolchain_.emplace(*std::move(toolchain));
  }

  static CompileRequest request(std::string kernel) {
    CompileRequest out;
    out.sources["kernel.cpp"] = std::move(kernel);
    out.entry = "kernel.cpp";
    return out;
  }

  // Files of the cache that are no locks.
  std::size_t left_in(const char* folder) const {
    std::size_t count = 0;
    std::error_code code;
    for (fs::directory_iterator it(cache_ / folder, code), end; !code && it != end; it.increment(code)) ++count;
    return count;
  }

  std::optional<Sandbox> sandbox_;
  std::optional<Toolchain> toolchain_;
  fs::path cache_, include_;
};

}  // namespace hone::testing

#endif
