#include "cli/facts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

// Whatever this machine is, a lack says what it costs and how to mend it.
TEST(CliDoctor, EveryLackHasACostAndARemedy) {
  std::set<std::string> ids;
  for (const cli::FactGroup& group : {cli::machine_facts(0), cli::tool_facts(nullptr), cli::gpu_facts()})
    for (const cli::Fact& fact : group.facts) {
      EXPECT_TRUE(ids.insert(fact.id).second) << fact.id << " twice";
      EXPECT_FALSE(fact.value.empty()) << fact.id;
      if (fact.state == cli::Fact::State::ok) continue;
      EXPECT_FALSE(fact.cost.empty()) << fact.id;
      EXPECT_FALSE(fact.mend.empty()) << fact.id;
    }
  for (const char* id : {"cpu", "cores", "g++", "sandbox", "cuda_driver", "nvml", "nvcc", "ncu"}) EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(CliDoctor, WithoutAnInstallationTheCpuPathDoesNotWork) {
  const fs::path alone = scratch("alone") / "hone";
  fs::copy_file(hone_binary(), alone);
  CommandOptions options;
  options.binary = alone;
  const CommandResult result = run_hone({"doctor", "--json"}, options);
  EXPECT_EQ(result.exit, 3) << result.err;
  const auto body = nlohmann::json::parse(result.out);
  EXPECT_EQ(body["schema"], "hone.doctor/1");
  EXPECT_EQ(body["cpu_path"], false);
  const auto lacks = body["lacks"].get<std::set<std::string>>();
  EXPECT_TRUE(lacks.contains("share"));
  EXPECT_TRUE(lacks.contains("sandbox"));
}

TEST(CliDoctor, ReadOnlyHomeIsReported) {
  CommandOptions options;
  options.cache = "/proc/hone";   // nobody can keep anything there
  const CommandResult result = run_hone({"doctor", "--json"}, options);
  EXPECT_EQ(result.exit, 3);
  EXPECT_TRUE(nlohmann::json::parse(result.out)["lacks"].get<std::set<std::string>>().contains("cache_space"));
}

TEST(CliDoctor, VariablesThatSlowLibrariesAreNamed) {
  CommandOptions options;
  options.env["OPENBLAS_CORETYPE"] = "Prescott";
  const CommandResult result = run_hone({"doctor"}, options);
  EXPECT_NE(result.out.find("OPENBLAS_CORETYPE=Prescott"), std::string::npos) << result.out;
}

TEST(CliDoctor, SandboxOffWarnsEveryTime) {
  const CommandResult result = run_hone({"doctor", "--sandbox=off"});
  EXPECT_NE(result.out.find("off (--sandbox=off)"), std::string::npos) << result.out;
  EXPECT_TRUE(result.err.starts_with("warning: --sandbox=off")) << result.err;
}

}  // namespace
}  // namespace hone::testing
