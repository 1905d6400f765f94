// The worktree's repository belongs to agents: nothing in it may run when Hone commits.
#include "run/git.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "testing/testing.h"

namespace hone {
namespace {

void put(const fs::path& path, const std::string& text, fs::perms perms = fs::perms::owner_all) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
  fs::permissions(path, perms);
}

TEST(Git, CommitsOnlyTheNamedPathsAsHone) {
  const fs::path tree = testing::scratch("commit");
  const Git git(tree);
  HONE_ASSERT_OK(git.init());
  put(tree / "frontier/a", "1");
  put(tree / "scratch/b", "2");
  HONE_ASSERT_OK(git.commit({"frontier"}, "one"));
  EXPECT_EQ(git.read({"log", "--format=%an <%ae> %s"}).value(), "hone <hone@localhost> one\n");
  EXPECT_EQ(git.read({"ls-files"}).value(), "frontier/a\n");
  HONE_ASSERT_OK(git.commit({"frontier"}, "nothing changed"));
  fs::remove(tree / "frontier/a");
  put(tree / "frontier/c", "3");
  HONE_ASSERT_OK(git.commit({"frontier"}, "two"));
  EXPECT_EQ(git.read({"log", "--format=%s"}).value(), "two\none\n");
  EXPECT_EQ(git.read({"ls-files"}).value(), "frontier/c\n");
}

TEST(Git, NothingThatAnAgentConfiguredIsRun) {
  const fs::path tree = testing::scratch("hostile");
  const Git git(tree);
  HONE_ASSERT_OK(git.init());
  const fs::path trap = tree.parent_path() / "ran";
  const std::string script = "#!/bin/sh\ntouch " + trap.string() + "\ncat\n";
  put(tree / "evil.sh", script);
  for (const char* hook : {"pre-commit", "post-commit", "post-index-change", "prepare-commit-msg", "reference-transaction"}) put(tree / ".git/hooks" / hook, script);
  const std::string evil = (tree / "evil.sh").string();
  std::ofstream(tree / ".git/config", std::ios::app)
      << "[core]\n  fsmonitor = " << evil << "\n  hooksPath = .git/hooks\n  attributesFile = " << (tree / "attributes").string()
      << "\n[filter \"x\"]\n  clean = " << evil << "\n  smudge = " << evil << "\n  required = true\n[diff]\n  external = " << evil
      << "\n[diff \"x\"]\n  textconv = " << evil << "\n[commit]\n  gpgSign = true\n[gpg]\n  program = " << evil << "\n";
  put(tree / ".gitattributes", "* filter=x diff=x\n");
  put(tree / "attributes", "* filter=x diff=x\n");
  put(tree / "frontier/a", "1");
  HONE_ASSERT_OK(git.commit({"frontier"}, "one"));
  put(tree / "frontier/a", "2");
  HONE_ASSERT_OK(git.commit({"frontier"}, "two"));
  EXPECT_EQ(git.read({"show", "HEAD:frontier/a"}).value(), "2");
  EXPECT_FALSE(fs::exists(trap));
}

TEST(Git, ARepositoryThatWasReplacedIsRefused) {
  const fs::path tree = testing::scratch("replaced"), other = testing::scratch("other");
  HONE_ASSERT_OK(Git(other).init());
  HONE_ASSERT_OK(Git(tree).init());
  fs::remove_all(tree / ".git");
  put(tree / ".git", "gitdir: " + (other / ".git").string() + "\n");
  put(tree / "a", "1");
  HONE_EXPECT_ERROR(Git(tree).commit({"a"}, "one"), contract);
  fs::remove(tree / ".git");
  fs::create_directory_symlink(other / ".git", tree / ".git");
  HONE_EXPECT_ERROR(Git(tree).commit({"a"}, "one"), contract);
}

TEST(Git, ThePersonsEnvironmentDoesNotMatter) {
  const fs::path tree = testing::scratch("environment");
  ::setenv("GIT_DIR", "/nonexistent", 1);
  ::setenv("GIT_AUTHOR_NAME", "somebody", 1);
  ::setenv("GIT_INDEX_FILE", "/nonexistent/index", 1);
  const Git git(tree);
  const auto made = git.init();
  put(tree / "a", "1");
  const auto committed = git.commit({"a"}, "one");
  ::unsetenv("GIT_DIR");
  ::unsetenv("GIT_AUTHOR_NAME");
  ::unsetenv("GIT_INDEX_FILE");
  HONE_ASSERT_OK(made);
  HONE_ASSERT_OK(committed);
  EXPECT_EQ(git.read({"log", "--format=%an"}).value(), "hone\n");
}

TEST(Git, DiffOfFolders) {
  const fs::path dir = testing::scratch("diff");
  put(dir / "x/kernel.cpp", "one\ntwo\n");
  put(dir / "y/kernel.cpp", "one\n2\n");
  const auto diff = diff_folders(dir / "x", dir / "y");
  HONE_ASSERT_OK(diff);
  EXPECT_NE(diff->find("-two\n+2\n"), std::string::npos);
  put(dir / "y/kernel.cpp", "one\ntwo\n");
  EXPECT_EQ(diff_folders(dir / "x", dir / "y").value(), "");
}

}  // namespace
}  // namespace hone
