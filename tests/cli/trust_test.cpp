// docs/trust.md promises tests by name: each must exist.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "testing/testing.h"

namespace hone::testing {
namespace {

TEST(Trust, EveryNamedTestExists) {
  std::set<std::string> tests, suites, hacks;
  const std::regex definition(R"(TEST(_F|_P)?\((\w+),\s*(\w+)\))");
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    if (entry.path().parent_path().filename() == "entries") hacks.insert(entry.path().stem().string());
    const std::string text = read_file(entry.path()).value();
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it) {
      suites.insert((*it)[2]);
      tests.insert((*it)[2].str() + "." + (*it)[3].str());
    }
  }
  const std::string page = read_file(source_dir() / "docs/trust.md").value();
  const std::regex quoted(R"(`([A-Za-z]\w*)\.(\w+|\*)`)");
  std::size_t seen = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), quoted), end; it != end; ++it) {
    const std::string suite = (*it)[1], name = (*it)[2];
    if (name == "cpp" || name == "md") continue;   // a file
    ++seen;
    EXPECT_TRUE(name == "*" ? suites.contains(suite) : tests.contains(suite + "." + name)) << suite << "." << name;
  }
  EXPECT_GT(seen, 40u);
  const std::regex listed("hack: ([^;|)\\n]*)"), word("`(\\w+)`");
  for (std::sregex_iterator it(page.begin(), page.end(), listed), end; it != end; ++it) {
    const std::string list = (*it)[1];
    for (std::sregex_iterator each(list.begin(), list.end(), word); each != end; ++each)
      EXPECT_TRUE(hacks.contains((*each)[1])) << "hack " << (*each)[1];
  }
}

}  // namespace
}  // namespace hone::testing
