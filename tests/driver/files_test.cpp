#include "driver/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "testing/testing.h"

namespace hone {
namespace {

struct Files : ::testing::Test {
  fs::path folder = testing::scratch("driver-files") / "work";
  void SetUp() override {
    fs::create_directories(folder / "below");
    EXPECT_TRUE(write_file_atomic(folder.parent_path() / "outside", "secret"));
    EXPECT_TRUE(write_file_atomic(folder / "below/lines", "1\n2\n3"));
  }
};

TEST_F(Files, LinesAreCountedFromOne) {
  const Enclosure files(folder, {});
  EXPECT_EQ(*files.read("below/lines"), "1\n2\n3");
  EXPECT_EQ(*files.read(folder / "below/lines", 2), "2\n3");
  EXPECT_EQ(*files.read("below/lines", 1, 2), "1\n2\n");
  EXPECT_EQ(*files.read("below/lines", 3, 9), "3");
  EXPECT_EQ(*files.read("below/lines", 9), "");
  EXPECT_EQ(*files.read("below/lines", 1, 0), "");
}

TEST_F(Files, NothingLeadsOut) {
  fs::create_symlink(folder.parent_path() / "outside", folder / "link");
  fs::create_symlink("..", folder / "up");
  fs::create_symlink("below", folder / "within");
  const Enclosure files(folder, {});
  for (const char* path : {"../outside", "link", "up/outside", "below/../../outside", "/etc/passwd", "/proc/self/root/etc/passwd"}) {
    HONE_EXPECT_ERROR(files.read(path), forbidden);
    HONE_EXPECT_ERROR(files.write(path, "x"), forbidden);
    EXPECT_FALSE(files.holds(path)) << path;
  }
  EXPECT_EQ(*read_file(folder.parent_path() / "outside"), "secret");
  EXPECT_EQ(*files.read("within/lines", 1, 1), "1\n") << "a link within is none out";
}

TEST_F(Files, TheFolderMayHaveAnotherName) {
  fs::create_directory_symlink(folder, folder.parent_path() / "alias");
  const Enclosure files(folder.parent_path() / "alias", {});
  EXPECT_TRUE(files.write(folder / "made/new", "a"));
  EXPECT_EQ(*files.read(folder.parent_path() / "alias/made/new"), "a");
}

TEST_F(Files, HiddenOnesAndOnesThatAreNoFiles) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Enclosure files(folder, {folder / "below"});
  HONE_EXPECT_ERROR(files.read("below/lines"), forbidden);
  HONE_EXPECT_ERROR(files.read("pipe"), io);
  HONE_EXPECT_ERROR(files.write("pipe", "x"), io);
  HONE_EXPECT_ERROR(files.read("."), io);
  HONE_EXPECT_ERROR(files.read("absent"), io);
  HONE_EXPECT_ERROR(files.write("big", std::string(Enclosure::kLimit + 1, 'x')), output_limit);
}

}  // namespace
}  // namespace hone
