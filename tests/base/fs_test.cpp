#include "base/fs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
