#include "run/init.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "run/git.h"
#include "testing/testing.h"

namespace hone {
namespace {

// A small task of the repository, with more keys in task.yaml.
Task task_with(const std::string& name, const std::string& more) {
  const fs::path folder = testing::scratch(name) / "scale";
  fs::copy(testing::source_dir() / "tests/faults/scale", folder, fs::copy_options::recursive);
  std::ofstream(folder / "task.yaml", std::ios::app) << more;
  auto task = load_task(folder.string());
  if (!task) {
    fmt::print(stderr, "{}\n", to_text(task.error()));
    std::abort();
  }
  return *std::move(task);
}

InitRequest request_for(const Task& task, const fs::path& dir) {
  InitRequest request;
  request.task_source = task.folder.string();
  request.dir = dir;
  return request;
}

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Init, MakesAWholeRunWithACleanHistory) {
  const Task task = task_with("whole", "");
  const fs::path place = testing::scratch("whole-run");
  InitRequest request = request_for(task, place / "first");
  request.target = 1.5;
  request.budget = *parse_budget("evaluations=60,time=120s");
  const auto run = init_run(task, request);
  HONE_ASSERT_OK(run);
  EXPECT_EQ(entries_in(place), 1u);   // nothing left beside it
  EXPECT_EQ(run->manifest.name, "first");
  EXPECT_EQ(run->manifest.task_sha256, task.sha256);
  EXPECT_EQ(run->manifest.budget.evaluations(), 60);
  EXPECT_EQ(run->manifest.sources.count("task/task.cpp"), 1u);
  for (const char* part : {"PROMPT.md", "flowverse.yaml", "ledger.jsonl", "receipts", "worktree/include/hone/plan.h", "worktree/docs/candidate.md", "worktree/docs/skills/debugging.md",
                           "worktree/task/task.yaml", "worktree/candidates/scale/frontier/index.json", "worktree/candidates/scale/scratch"})
    EXPECT_TRUE(fs::exists(run->root / part)) << part;
  const Git git(run->worktree());
  EXPECT_EQ(git.read({"rev-list", "--count", "HEAD"}).value(), "1\n");
  EXPECT_EQ(git.read({"status", "--porcelain"}).value(), "");
  const std::string prompt = read_file(run->root / "PROMPT.md").value();
  for (const char* fact : {"y = 2 x", "1.5x", "evaluations=60", "| one | N=4096 |", "candidates/scale/scratch"})
    EXPECT_NE(prompt.find(fact), std::string::npos) << fact;
  EXPECT_EQ(prompt.find("{{"), std::string::npos);
  EXPECT_EQ(prompt.find("&quot;"), std::string::npos);
}

TEST(Init, ConfiguresAgentPrograms) {
  const Task task = task_with("agents", "");
  const auto run = init_run(task, request_for(task, testing::scratch("agents run") / "it's"));
  HONE_ASSERT_OK(run);
  const auto server = nlohmann::json::parse(read_file(run->agents() / "mcp.json").value())["mcpServers"]["hone"];
  EXPECT_TRUE(fs::path(server["command"].get<std::string>()).is_absolute());
  EXPECT_EQ(server["args"], nlohmann::json({"mcp", "--run", run->root.string()}));
  EXPECT_EQ(server["env"]["HONE_SHARE"], fs::absolute(*share_dir()).lexically_normal().string());
  EXPECT_FALSE(server["env"].contains("HONE_TOKEN"));
  const auto settings = nlohmann::json::parse(read_file(run->agents() / "settings.json").value());
  const auto& hook = settings["hooks"]["PreToolUse"][0];
  for (const char* tool : {"Edit", "Write", "MultiEdit", "NotebookEdit", "Bash"}) EXPECT_NE(hook["matcher"].get<std::string>().find(tool), std::string::npos);
  EXPECT_NE(hook["hooks"][0]["command"].get<std::string>().find("guard --run '"), std::string::npos) << "quoted for the shell";
  EXPECT_TRUE(hook["hooks"][0]["command"].get<std::string>().ends_with("|| exit 2")) << "a hook that fails must deny";
  const std::string codex = read_file(run->agents() / "config.toml").value();
  for (const char* fact : {"required = true", "tool_timeout_sec = ", "default_tools_approval_mode = \"approve\"", "[mcp_servers.hone.env]", "HONE_SHARE = \""})
    EXPECT_NE(codex.find(fact), std::string::npos) << fact;
}

TEST(Init, IsFoundFromInside) {
  const Task task = task_with("inside", "");
  const auto run = init_run(task, request_for(task, testing::scratch("inside-run") / "r"));
  HONE_ASSERT_OK(run);
  for (const char* part : {"", "worktree", "worktree/candidates/scale/scratch", "receipts"}) {
    const auto found = find_run(run->root / part);
    HONE_ASSERT_OK(found);
    EXPECT_EQ(found->root, run->root);
  }
  HONE_EXPECT_ERROR(find_run(run->root.parent_path()), not_found);
  HONE_EXPECT_ERROR(find_run(fs::path("/nowhere")), not_found);
  HONE_ASSERT_OK(task_of(*run));
  std::ofstream(task.folder / "task.cpp", std::ios::app) << "// another contract\n";
  HONE_EXPECT_ERROR(task_of(*run), contract);
}

TEST(Init, LeakBansAreAppliedByRemoval) {
  const Task task = task_with("bans", "leak_bans: [\"baseline/*\", \"task/task.cpp\", \"tasks/scale/baseline/plan.cpp\"]\n");
  const auto run = init_run(task, request_for(task, testing::scratch("bans-run") / "r"));
  HONE_ASSERT_OK(run);
  EXPECT_FALSE(fs::exists(run->worktree() / "task/baseline"));
  EXPECT_FALSE(fs::exists(run->worktree() / "task/task.cpp"));
  EXPECT_TRUE(fs::exists(run->worktree() / "task/task.yaml"));
  EXPECT_EQ(Git(run->worktree()).read({"log", "--all", "--format=%H", "--", "task/task.cpp", "task/baseline"}).value(), "");
}

TEST(Init, ABanThatMatchesNothingIsAnErrorAndLeavesNothing) {
  const Task task = task_with("misspelt", "leak_bans: [\"baselines/*\"]\n");
  const fs::path place = testing::scratch("misspelt-run");
  const auto run = init_run(task, request_for(task, place / "r"));
  HONE_EXPECT_ERROR(run, contract);
  EXPECT_NE(run.error().message.find("baselines/*"), std::string::npos);
  EXPECT_EQ(entries_in(place), 0u);
}

TEST(Init, RefusesAPlaceThatIsTaken) {
  const Task task = task_with("taken", "");
  const fs::path place = testing::scratch("taken-run");
  std::ofstream(place / "file") << "x";
  fs::create_directories(place / "folder");
  HONE_EXPECT_ERROR(init_run(task, request_for(task, place / "file")), usage);
  HONE_EXPECT_ERROR(init_run(task, request_for(task, place / "folder")), usage);
  EXPECT_EQ(entries_in(place), 2u);
  EXPECT_EQ(read_file(place / "file").value(), "x");
}

TEST(Init, NamesByDefaultAndRefusesBadOnes) {
  const Task task = task_with("names", "");
  const fs::path home = testing::scratch("names-home");
  ::setenv("HONE_HOME", home.c_str(), 1);
  InitRequest request = request_for(task, "");
  request.dir.reset();
  const auto one = init_run(task, request), two = init_run(task, request);
  request.name = std::string(300, 'a');
  const auto lengthy = init_run(task, request);
  HONE_EXPECT_ERROR(lengthy, usage);
  EXPECT_NE(lengthy.error().message.find("at most 100"), std::string::npos) << lengthy.error().message;
  request.name = "../escape";
  const auto escape = init_run(task, request);
  request.name = "named";
  const auto named = init_run(task, request), again = init_run(task, request);
  const auto by_name = find_run(fs::path("named"));
  ::unsetenv("HONE_HOME");
  HONE_ASSERT_OK(one);
  HONE_ASSERT_OK(two);
  EXPECT_EQ(one->root.filename(), "scale-1");
  EXPECT_EQ(two->root.filename(), "scale-2");
  HONE_EXPECT_ERROR(escape, usage);
  HONE_ASSERT_OK(named);
  HONE_EXPECT_ERROR(again, usage);
  HONE_ASSERT_OK(by_name);
  EXPECT_EQ(by_name->root, named->root);
}

TEST(Init, AnEditedManifestIsALocatedError) {
  const Task task = task_with("manifest", "");
  const auto run = init_run(task, request_for(task, testing::scratch("manifest-run") / "r"));
  HONE_ASSERT_OK(run);
  const fs::path path = run->root / "manifest.json";
  const std::string good = read_file(path).value();
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() / 2), std::string("[1]"), std::string(200000, '[')}) {
    std::ofstream(path) << bad;
    const auto opened = open_run(run->root);
    HONE_EXPECT_ERROR(opened, contract);
  }
}

}  // namespace
}  // namespace hone
