#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "base/process.h"
#include "cli/app.h"
#include "cli/page.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

std::string script(const std::string& shell) {
  cli::Invocation invocation;
  const auto app = cli::make_app(invocation);
  return cli::completion_script(cli::page_of(*app), shell);
}

// What bash offers after the words; the last one is being typed.
std::string offered(const std::string& words, int index) {
  ProcessSpec spec;
  spec.argv = {"bash", "--norc", "-c",
               script("bash") + "\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=" + std::to_string(index) + "\n_hone\nprintf '%s ' \"${COMPREPLY[@]}\"\n"};
  spec.env = {"PATH=/usr/bin:/bin"};
  spec.cwd = scratch("empty").string();
  const auto outcome = run_process(spec);
  return outcome && outcome->ok() ? outcome->out : "failed: " + (outcome ? outcome->err : to_text(outcome.error()));
}

TEST(CliCompletion, BashOffersVerbsFlagsAndChoices) {
  EXPECT_EQ(offered("hone doc", 1), "doctor ");
  EXPECT_EQ(offered("hone doctor --j", 2), "--json ");
  EXPECT_EQ(offered("hone doctor --sandbox o", 3), "on off ");
  EXPECT_EQ(offered("hone completion z", 2), "zsh ");
  EXPECT_EQ(offered("hone task sh", 2), "show ");
  EXPECT_EQ(offered("hone frontier list --q", 3), "--quiet ");
}

void parses(const std::string& shell, const std::string& flag) {
  if (find_program(shell).empty()) {
    GTEST_SKIP() << shell << " is not installed";
  }
  ProcessSpec spec;
  spec.argv = {shell, flag};
  spec.env = {"PATH=/usr/bin:/bin"};
  spec.stdin_text = script(shell);
  const auto outcome = run_process(spec);
  HONE_ASSERT_OK(outcome);
  EXPECT_TRUE(outcome->ok()) << outcome->err;
}

TEST(CliCompletion, BashParses) { parses("bash", "-n"); }
TEST(CliCompletion, ZshParses) { parses("zsh", "-n"); }
TEST(CliCompletion, FishParses) { parses("fish", "--no-execute"); }

TEST(CliCompletion, EveryScriptKnowsEveryVerb) {
  cli::Invocation invocation;
  const auto app = cli::make_app(invocation);
  for (const char* shell : {"bash", "zsh", "fish"})
    for (const cli::Page& verb : cli::page_of(*app).commands)
      EXPECT_NE(script(shell).find(verb.name), std::string::npos) << shell << " lacks " << verb.name;
}

}  // namespace
}  // namespace hone::testing
