// Packages of headers, and compiling with further folders of headers.
#include "toolchain/headers.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "testing/testing.h"
#include "toolchain_fixture.h"

namespace hone::testing {
namespace {

// A variable for the life of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

void put(const fs::path& path, const std::string& text) {
  HONE_ASSERT_OK(make_dirs(path.parent_path()));
  HONE_ASSERT_OK(write_file_atomic(path, text));
}

TEST(Headers, ThePins) {
  for (const HeaderPackage& each : header_packages()) {
    EXPECT_EQ(find_header_package(each.name), &each);
    EXPECT_EQ(each.file_sha256.size(), 64u);
    EXPECT_EQ(each.sha256.size(), 64u);
    EXPECT_FALSE(each.folders.empty());
    EXPECT_FALSE(each.licence.empty());
    EXPECT_NE(each.file.find(each.version), std::string_view::npos);
  }
  EXPECT_EQ(find_header_package(""), nullptr);
  EXPECT_EQ(find_header_package("deepgem"), nullptr);
}

TEST(Headers, FoundWhereTheVariableSaysOrInTheDataFolder) {
  const HeaderPackage& package = *find_header_package("deepgemm");
  const fs::path root = scratch("headers");
  {
    const Variable home("HONE_HOME", (root / "home").string()), none("HONE_DEEPGEMM", "");
    HONE_EXPECT_ERROR(find_headers(package), environment);
    EXPECT_EQ(find_headers(package).error().message, "not installed, `hone toolchain add deepgemm`");
    for (const std::string_view folder : package.folders) put(place_of(package) / package.include / folder / "a.h", "");
    const auto found = find_headers(package);
    HONE_ASSERT_OK(found);
    EXPECT_EQ(*found, root / "home/data/toolchains/deepgemm-0.2.5/deep_gemm/include");
  }
  const Variable elsewhere("HONE_DEEPGEMM", (root / "wheel").string());
  HONE_EXPECT_ERROR(find_headers(package), environment);
  for (const std::string_view folder : package.folders) put(root / "wheel" / package.include / folder / "a.h", "1");
  const auto found = find_headers(package);
  HONE_ASSERT_OK(found);
  const auto before = headers_sha256(package, *found);
  HONE_ASSERT_OK(before);
  put(*found / "unwanted/a.h", "of no account");
  EXPECT_EQ(*headers_sha256(package, *found), *before);
  put(*found / "cute/a.h", "2");
  EXPECT_NE(*headers_sha256(package, *found), *before);
}

class Includes : public ToolchainTest {};

TEST_F(Includes, OnlyTrustedCodeHasThemAndAChangedHeaderIsCompiledAnew) {
  const fs::path folder = scratch("includes");
  put(folder / "other/value.h", "#define VALUE 1\n");
  CompileRequest wanted = request("#include <other/value.h>\nextern \"C\" int value() { return VALUE; }\n");
  wanted.includes = {folder};
  HONE_EXPECT_ERROR(toolchain_->compile(wanted), forbidden);
  wanted.trusted = true;
  const auto first = toolchain_->compile(wanted);
  HONE_ASSERT_OK(first);
  EXPECT_FALSE(first->cached);
  EXPECT_TRUE(toolchain_->compile(wanted)->cached);
  put(folder / "other/value.h", "#define VALUE 22\n");
  const auto second = toolchain_->compile(wanted);
  HONE_ASSERT_OK(second);
  EXPECT_FALSE(second->cached);
  EXPECT_NE(second->sha256, first->sha256);
}

}  // namespace
}  // namespace hone::testing
