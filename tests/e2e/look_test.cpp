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

// What is missing is named before anything is compiled or a GPU is asked for.
TEST(Look, ProfileAndSanitizeSayWhatTheyLack) {
  const std::string cpu = candidate("honest").string(), cuda = (source_dir() / "kernels/softmax_cuda/registers").string();
  const fs::path bin = scratch("tools");
  for (const auto& [verb, tool] : {std::pair{"profile", "ncu"}, std::pair{"sanitize", "compute-sanitizer"}}) {
    const CommandResult here = run_hone({verb, cpu, "--task", "softmax_f32"});
    EXPECT_EQ(here.exit, 2) << here.out << here.err;
    EXPECT_NE(here.err.find("CUDA kernels only"), std::string::npos) << here.err;
    EXPECT_EQ(run_hone({verb, cuda, "--arch", "sm_90a"}).exit, 2) << "it runs on the GPU that is here";
    const auto facts = nlohmann::json::parse(run_hone({"doctor", "--json"}).out).at("facts");
    const auto missing = [&](const std::string& id) {
      for (const auto& fact : facts)
        if (fact.at("id") == id) return fact.at("state") == "missing";
      return true;
    };
    if (missing(tool)) {
      const CommandResult none = run_hone({verb, cuda, "--json"});
      EXPECT_EQ(none.exit, 3);
      EXPECT_NE(nlohmann::json::parse(none.out)["error"]["message"].get<std::string>().find(std::string("no ") + tool), std::string::npos) << none.out;
    }
    if (!missing("gpu0")) continue;
    HONE_ASSERT_OK(write_file_atomic(bin / tool, "#!/bin/sh\nexit 1\n", 0755));
    CommandOptions with;
    with.env["PATH"] = bin.string() + ":/usr/local/bin:/usr/bin:/bin";
    const CommandResult result = run_hone({verb, cuda}, with);
    EXPECT_EQ(result.exit, 3);
    EXPECT_NE(result.err.find("error(environment)"), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find(std::string("no ") + tool), std::string::npos) << result.err;
  }
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
