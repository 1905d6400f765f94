#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "cli/app.h"
#include "cli/page.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

// docs/man is generated; this is what notices a difference.
TEST(CliMan, CommittedPagesAreThoseOfTheTable) {
  cli::Invocation invocation;
  const auto app = cli::make_app(invocation);
  const auto pages = cli::man_pages(cli::page_of(*app), HONE_VERSION);
  const auto committed = read_tree(source_dir() / "docs/man");
  HONE_ASSERT_OK(committed);
  EXPECT_EQ(*committed, pages) << "run scripts/man";
}

TEST(CliMan, TextCannotBecomeARequest) {
  cli::Page page;
  page.path = page.name = "hone";
  page.summary = ".so /etc/passwd";
  page.flags.push_back({.names = {"--a-b"}, .value = {}, .choices = {}, .text = "'quoted\\", .fallback = {}});
  const std::string text = cli::man_pages(page, "1").at("hone.1");
  EXPECT_EQ(text.find("\n.so"), std::string::npos);
  EXPECT_NE(text.find("\n\\&'quoted\\e\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\\-\\-a\\-b"), std::string::npos);
}

}  // namespace
}  // namespace hone::testing
