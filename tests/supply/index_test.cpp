#include "supply/index.h"

#include <gtest/gtest.h>

#include "supply/wheels.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

client::Url url(const std::string& text) { return *client::parse_url(text); }

TEST(Index, LinksAreMeantAsOnTheirPage) {
  client::Url page = url("https://host:8443/root/simple/nvidia-x");
  page.path += "/";
  const auto meant = [&](const char* link) {
    const auto out = resolve_link(page, link);
    return out ? client::to_text(*out) : to_text(out.error());
  };
  EXPECT_EQ(meant("https://files.example/a/x.whl#sha256=12"), "https://files.example:443/a/x.whl");
  EXPECT_EQ(meant("../../files/x.whl"), "https://host:8443/root/files/x.whl");
  EXPECT_EQ(meant("x.whl"), "https://host:8443/root/simple/nvidia-x/x.whl");
  EXPECT_EQ(meant("/x.whl"), "https://host:8443/x.whl");
  EXPECT_EQ(meant("//other/x.whl"), "https://other:443/x.whl");
  EXPECT_EQ(meant("../../../../../../x.whl"), "https://host:8443/x.whl");
}

TEST(Index, OnlyTheVeryFileIsTaken) {
  client::Url page = url("http://host/simple/p");
  page.path += "/";
  const std::string html = "<a href=\"/f/p-1.0.whl.metadata\">p-1.0.whl</a><a href=\"/f/zp-1.0.whl\">x</a><a class=a href=\"/f/p-1.0.whl#sha256=0\">p</a><a href=\"";
  const auto found = find_in_page(html, page, "p-1.0.whl");
  HONE_ASSERT_OK(found);
  EXPECT_EQ(found->path, "/f/p-1.0.whl");
  HONE_EXPECT_ERROR(find_in_page(html, page, "p-2.0.whl"), not_found);
}

TEST(Wheels, ArePinnedWhole) {
  const Toolkit& cuda = cuda_toolkit();
  EXPECT_EQ(cuda.wheels.size(), 7u);
  for (const Wheel& wheel : cuda.wheels) {
    EXPECT_EQ(wheel.sha256.size(), 64u) << wheel.file;
    EXPECT_EQ(wheel.sha256.find_first_not_of("0123456789abcdef"), std::string::npos) << wheel.file;
    EXPECT_TRUE(wheel.file.ends_with("x86_64.whl")) << wheel.file;
    EXPECT_GT(wheel.bytes, 0u);
  }
}

}  // namespace
}  // namespace hone::testing
