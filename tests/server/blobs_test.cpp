#include "server/blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/hash.h"
#include "testing/testing.h"

namespace hone::server {
namespace {

using ::testing::HasSubstr;

std::size_t files_below(const fs::path& folder) {
  std::size_t n = 0;
  for (const auto& each : fs::recursive_directory_iterator(folder)) n += each.is_regular_file() ? 1u : 0u;
  return n;
}

struct BlobsTest : ::testing::Test {
  fs::path folder = hone::testing::scratch("blobs");
  Blobs blobs = Blobs::open(folder).value();
};

TEST_F(BlobsTest, WhatIsPutCanBeRead) {
  const std::string bytes = "a\0b" + std::string(100000, 'x'), name = sha256(bytes);
  EXPECT_FALSE(blobs.holds(name));
  HONE_ASSERT_OK(blobs.put(name, bytes));
  HONE_ASSERT_OK(blobs.put(name, bytes));
  EXPECT_TRUE(blobs.holds(name));
  EXPECT_EQ(blobs.get(name).value(), bytes);
  HONE_ASSERT_OK(blobs.remove(name));
  HONE_ASSERT_OK(blobs.remove(name));
  HONE_EXPECT_ERROR(blobs.get(name), not_found);
}

TEST_F(BlobsTest, OtherBytesThanPromisedLeaveNothing) {
  const auto put = blobs.put(sha256("this"), "that");
  HONE_EXPECT_ERROR(put, contract);
  EXPECT_THAT(put.error().message, HasSubstr(sha256("that")));
  EXPECT_EQ(files_below(folder), 0u);
}

TEST_F(BlobsTest, AnUploadThatEndsEarlyLeavesNothing) {
  {
    auto upload = blobs.begin(sha256("whole"));
    HONE_ASSERT_OK(upload);
    HONE_ASSERT_OK(upload->append("who"));
    EXPECT_EQ(upload->bytes(), 3u);
    EXPECT_EQ(files_below(folder), 1u);
  }
  EXPECT_EQ(files_below(folder), 0u);
}

TEST_F(BlobsTest, AKilledServersUploadsAreRemoved) {
  std::ofstream(folder / "uploads" / "half") << "half";
  HONE_ASSERT_OK(Blobs::open(folder));
  EXPECT_EQ(files_below(folder), 0u);
}

TEST_F(BlobsTest, NamesAreHashesAndNothingElse) {
  for (const std::string& name : {std::string(), std::string("../../etc/passwd"), std::string(64, 'g'), std::string(64, 'A'),
                                 std::string(63, 'a'), std::string(65, 'a'), "../" + std::string(61, 'a')}) {
    HONE_EXPECT_ERROR(blobs.put(name, ""), usage);
    HONE_EXPECT_ERROR(blobs.get(name), not_found);
    HONE_EXPECT_ERROR(blobs.remove(name), usage);
  }
}

TEST_F(BlobsTest, ADamagedFileIsNeverServed) {
  const std::string name = sha256("good");
  HONE_ASSERT_OK(blobs.put(name, "good"));
  std::ofstream(folder / name.substr(0, 2) / name) << "evil";
  HONE_EXPECT_ERROR(blobs.get(name), contract);
  EXPECT_FALSE(blobs.holds(name));
}

TEST_F(BlobsTest, AFolderThatCannotBeWrittenIsAnError) {
  fs::remove_all(folder / "uploads");
  std::ofstream(folder / "uploads") << "a file in the folder's place";
  HONE_EXPECT_ERROR(blobs.put(sha256("x"), "x"), io);
}

}  // namespace
}  // namespace hone::server
