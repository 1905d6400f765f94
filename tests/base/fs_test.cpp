#include "base/fs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "testing/testing.h"

namespace hone {
namespace {

TEST(Files, AtomicWriteReplacesAndLeavesNothingBehind) {
  const fs::path dir = testing::scratch("atomic");
  HONE_ASSERT_OK(write_file_atomic(dir / "a", "one"));
  HONE_ASSERT_OK(write_file_atomic(dir / "a", "two"));
  EXPECT_EQ(read_file(dir / "a").value(), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir), fs::directory_iterator()), 1);
}

TEST(Files, ErrorsNameThePath) {
  const auto missing = read_file("/nowhere/at/all");
  HONE_EXPECT_ERROR(missing, io);
  EXPECT_EQ(missing.error().place.file, "/nowhere/at/all");
}

TEST(Files, ReadLimit) {
  const fs::path dir = testing::scratch("limit");
  HONE_ASSERT_OK(write_file_atomic(dir / "a", "0123456789"));
  HONE_EXPECT_ERROR(read_file(dir / "a", 9), io);
  EXPECT_EQ(read_file(dir / "a", 10).value().size(), 10u);
}

TEST(Files, TooLargeATreeIsAFaultOfTheTree) {
  const fs::path dir = testing::scratch("large");
  HONE_ASSERT_OK(write_file_atomic(dir / "one", std::string(3 << 20, 'x')));
  HONE_ASSERT_OK(read_tree(dir, {2, std::size_t{3} << 20}));
  const auto one = read_tree(dir, {2, std::size_t{2} << 20});
  HONE_EXPECT_ERROR(one, contract);
  EXPECT_EQ(one.error().place.file, (dir / "one").string());
  EXPECT_FALSE(one.error().hint.empty());
  HONE_ASSERT_OK(write_file_atomic(dir / "two", "x"));
  HONE_EXPECT_ERROR(read_tree(dir, {2, std::size_t{3} << 20}), contract);
  HONE_EXPECT_ERROR(read_tree(dir, {1, std::size_t{9} << 20}), contract);
}

TEST(Files, TreeRefusesLinks) {
  const fs::path dir = testing::scratch("tree");
  HONE_ASSERT_OK(make_dirs(dir / "sub"));
  HONE_ASSERT_OK(write_file_atomic(dir / "sub/a.h", "x"));
  HONE_ASSERT_OK(write_file_atomic(dir / "kernel.cpp", "y"));
  const auto tree = read_tree(dir);
  HONE_ASSERT_OK(tree);
  EXPECT_EQ(tree->size(), 2u);
  EXPECT_EQ(tree->at("sub/a.h"), "x");
  fs::create_symlink("/etc/passwd", dir / "link");
  HONE_EXPECT_ERROR(read_tree(dir), contract);
}

// A process that makes a scratch folder in `temp`, old at once, and is killed; the folder's path.
fs::path scratch_of_a_killed_process(const fs::path& temp) {
  const fs::path answer = temp / "answer";
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TMPDIR", temp.c_str(), 1);
    const auto folder = ScratchDir::create();
    const timespec old[2] = {{1000, 0}, {1000, 0}};
    if (folder && ::utimensat(AT_FDCWD, folder->path().c_str(), old, 0) == 0) (void)write_file_atomic(answer, folder->path().string());
    ::raise(SIGKILL);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  return read_file(answer).value_or("");
}

TEST(Files, ScratchOfAKilledProcessIsSweptByALaterOne) {
  const fs::path temp = testing::scratch("temp");
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  // A person's own folder is not touched, however old.
  ASSERT_TRUE(make_dirs(temp / "hone-second"));
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp / "hone-second").c_str(), old, 0), 0);

  const fs::path first = scratch_of_a_killed_process(temp);
  ASSERT_TRUE(fs::exists(first));
  const auto living = ScratchDir::create(temp);
  ASSERT_TRUE(living);
  ASSERT_EQ(::utimensat(AT_FDCWD, living->path().c_str(), old, 0), 0);
  const fs::path second = scratch_of_a_killed_process(temp);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second));
  EXPECT_TRUE(fs::exists(living->path())) << "its process lives";
  EXPECT_TRUE(fs::exists(temp / "hone-second"));
}

TEST(Files, LockIsExclusive) {
  const fs::path dir = testing::scratch("lock");
  auto first = FileLock::acquire(dir / "l");
  HONE_ASSERT_OK(first);
  EXPECT_EQ(FileLock::try_acquire(dir / "l").error().message, "busy");
  { auto released = std::move(*first); }
  EXPECT_TRUE(FileLock::try_acquire(dir / "l").has_value());
}

}  // namespace
}  // namespace hone
