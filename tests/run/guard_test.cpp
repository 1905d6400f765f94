#include "run/guard.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "testing/testing.h"

namespace hone {
namespace {

using nlohmann::json;

class Guard : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(testing::scratch("guard")) / "run";
    for (const char* folder : {"worktree/candidates/t/scratch/mine", "worktree/.git", "receipts", "../sibling"}) fs::create_directories(root_ / folder);
    std::ofstream(root_ / "ledger.jsonl") << "{}\n";
  }
  bool edit(const std::string& path, const char* tool = "Write", const char* key = "file_path") {
    return guard_tool(root_, json{{"tool_name", tool}, {"tool_input", {{key, path}}}, {"cwd", (root_ / "worktree").string()}}).has_value();
  }
  bool shell(const std::string& line) {
    return guard_tool(root_, json{{"tool_name", "Bash"}, {"tool_input", {{"command", line}}}, {"cwd", (root_ / "worktree").string()}}).has_value();
  }
  fs::path root_;
};

TEST_F(Guard, EditsStayInTheWorktree) {
  EXPECT_TRUE(edit("candidates/t/scratch/mine/kernel.cpp"));
  EXPECT_TRUE(edit((root_ / "worktree/new/deep/file").string(), "Edit"));
  EXPECT_TRUE(edit("notes.ipynb", "NotebookEdit", "notebook_path"));
  for (const char* path : {"../ledger.jsonl", "../receipts/x.json", "candidates/../../PROMPT.md", "/etc/passwd", "../../sibling/ledger.jsonl", "../worktree", "."})
    EXPECT_FALSE(edit(path)) << path;
  EXPECT_FALSE(edit(".git/hooks/pre-commit"));
  EXPECT_FALSE(edit((root_.string() + "/worktreeX/file")));      // a name that only begins so
}

TEST_F(Guard, LinksAreFollowed) {
  fs::create_directory_symlink(root_, root_ / "worktree/up");
  fs::create_symlink(root_ / "receipts/not-there-yet.json", root_ / "worktree/dangling");
  fs::create_symlink("loop", root_ / "worktree/loop");
  fs::create_directory_symlink("candidates/t", root_ / "worktree/inside");
  EXPECT_FALSE(edit("up/ledger.jsonl"));
  EXPECT_FALSE(edit("dangling"));
  EXPECT_FALSE(edit("loop"));
  EXPECT_FALSE(edit("inside/../../../../ledger.jsonl"));
  EXPECT_TRUE(edit("inside/scratch/mine/plan.cpp"));
  EXPECT_FALSE(shell("echo x > up/ledger.jsonl"));
}

TEST_F(Guard, ShellCommandsMayReadTheRecordButNotWriteIt) {
  for (const char* line : {"cat ../ledger.jsonl", "grep -c evaluation ../ledger.jsonl | sort", "ls -l ../receipts", "head -n 3 ../PROMPT.md && hone status", "sed -n 1,20p ../PROMPT.md",
                           "g++ -O3 candidates/t/scratch/mine/kernel.cpp 2>&1 | tail -3", "echo '{\"a\": 1}' > notes.txt", "rm -rf candidates/t/scratch/mine", "hone bench mine > /dev/null",
                           "cd .. && cat ledger.jsonl", "find .. -name '*.json'", "cat ../ledger.jsonl > here.txt", "mkdir -p /tmp/x && cp a /tmp/x", "awk '{print $1}' ../ledger.jsonl"})
    EXPECT_TRUE(shell(line)) << line;
  for (const char* line : {"echo x >> ../ledger.jsonl", "rm ../ledger.jsonl", "rm -rf ..", "cp forged.json ../receipts/", "sed -i s/a/b/ ../ledger.jsonl", "cd .. && rm ledger.jsonl",
                           "tee ../ledger.jsonl < x", "python3 -c \"open('../ledger.jsonl','w')\"", "dd if=/dev/zero of=../ledger.jsonl", "mv '../receipts' away", "true; >../ledger.jsonl",
                           "cat a |tee -a ../ledger.jsonl", "find .. -name '*.json' -delete", "bash -c 'echo > ../ledger.jsonl'", "rm -rf ../../run", "(cd ../receipts; rm *.json)", "sort -o ../ledger.jsonl x"})
    EXPECT_FALSE(shell(line)) << line;
  EXPECT_FALSE(shell("rm " + (root_ / "ledger.jsonl").string()));
}

TEST_F(Guard, WhatCannotBeReadIsDenied) {
  const std::string cwd = (root_ / "worktree").string();
  for (const json& input : {json::object(), json::array(), json{{"tool_name", "Write"}, {"cwd", cwd}}, json{{"tool_name", "Write"}, {"cwd", cwd}, {"tool_input", {{"file_path", 3}}}},
                            json{{"tool_name", "Write"}, {"tool_input", {{"file_path", "a"}}}}, json{{"tool_name", "Bash"}, {"cwd", cwd}, {"tool_input", json::array()}},
                            json{{"tool_name", 1}, {"cwd", cwd}}, json{{"tool_name", "Edit"}, {"cwd", "relative"}, {"tool_input", {{"file_path", "a"}}}}})
    EXPECT_FALSE(guard_tool(root_, input).has_value()) << input.dump();
  for (const char* text : {"", "{", "null", "\xff"}) HONE_EXPECT_ERROR(guard_hook(root_, text), forbidden);
  EXPECT_TRUE(guard_tool(root_, json{{"tool_name", "Read"}, {"cwd", cwd}, {"tool_input", {{"file_path", "../PROMPT.md"}}}}).has_value());
}

}  // namespace
}  // namespace hone
