// `hone compile` and `hone inspect` as a person uses them: what is printed where, and the exit codes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "candidate.h"
#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

TEST(Look, CompilePrintsModulesAndRunsNothing) {
  const std::string endless = kernel("for (;;) y[0] += 1;");
  const CommandResult text = run_hone({"compile", candidate("endless", {{"kernel.cpp", endless}}).string(), "--task", "softmax_f32"});
  EXPECT_EQ(text.exit, 0) << text.out << text.err;
  EXPECT_NE(text.out.find("kernel.cpp\n\ncompiled: 4/4 workloads for cpu, 1 module, g++ "), std::string::npos) << text.out;
}

TEST(Look, AnErrorIsAtItsPlaceAndOnce) {
  const fs::path folder = candidate("broken", {{"kernel.cpp", kernel(std::string(kHonest) + "oops;")}});
  for (const char* verb : {"compile", "inspect"}) {
    const CommandResult text = run_hone({verb, folder.string(), "--task", "softmax_f32"});
    EXPECT_EQ(text.exit, 1) << text.out << text.err;
    EXPECT_NE(text.out.find("compiled: 0/4"), std::string::npos) << text.out;
    const std::string place = (folder / "kernel.cpp").string() + ":";
    const std::size_t first = text.err.find(place);
    ASSERT_NE(first, std::string::npos) << text.err;
    EXPECT_EQ(text.err.find("error(compile)", text.err.find("error(compile)") + 1), std::string::npos) << text.err;
    EXPECT_NE(text.err.find("for workloads small, attention, odd, vocabulary"), std::string::npos) << text.err;
    const CommandResult result = run_hone({verb, folder.string(), "--task", "softmax_f32", "--json", "--quiet"});
    EXPECT_EQ(result.exit, 1);
    EXPECT_EQ(result.err, "");
    const auto report = nlohmann::json::parse(result.out);
    EXPECT_EQ(report["failed"], 4);
    EXPECT_EQ(report["workloads"][0]["error"]["place"]["file"], "kernel.cpp");
  }
}

TEST(Look, WhatCannotBeAskedForIsUsage) {
  const std::string folder = candidate("honest").string();
  EXPECT_EQ(run_hone({"compile", folder}).exit, 2) << "which task?";
  EXPECT_EQ(run_hone({"compile", folder, "--task", "softmax_f32", "--workload", "smal"}).exit, 2);
  EXPECT_EQ(run_hone({"compile", folder, "--task", "softmax_f32", "--arch", "sm_1"}).exit, 2);
  EXPECT_EQ(run_hone({"compile", folder, "--task", "softmax_f32", "--arch", "sm_90a"}).exit, 2) << "C++ for a CPU";
  EXPECT_EQ(run_hone({"inspect", folder, "--task", "softmax_f32", "--ptx", "--sass"}).exit, 2);
  EXPECT_EQ(run_hone({"inspect", folder, "--task", "softmax_f32", "--ptx"}).exit, 3) << "no PTX on a CPU";
}

TEST(Look, InspectPrintsTheListingAlone) {
  if (!fs::exists("/usr/bin/objdump")) {
    GTEST_SKIP() << "no objdump";
  }
  const std::string folder = candidate("honest").string();
  const CommandResult code = run_hone({"inspect", folder, "--task", "softmax_f32", "--sass"});
  EXPECT_EQ(code.exit, 0) << code.err;
  EXPECT_TRUE(code.out.starts_with("// module kernel.cpp\n")) << code.out.substr(0, 200);
  EXPECT_NE(code.out.find("<_Z7softmax"), std::string::npos);
  const CommandResult off = run_hone({"inspect", folder, "--task", "softmax_f32", "--sandbox", "off"});
  EXPECT_EQ(off.exit, 0) << off.err;
  EXPECT_NE(off.out.find(" instructions of x86 by objdump "), std::string::npos) << off.out;
  EXPECT_NE(off.out.find("kernel.cpp:"), std::string::npos) << off.out;
}

}  // namespace
}  // namespace hone::testing
