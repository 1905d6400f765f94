// Text cases: one file holds many inputs with what is expected of each. HONE_UPDATE=1 rewrites them.
//
//   # a comment
//   == the case's name
//   > a line of input
//   < a line of the expected text
#ifndef HONE_TESTS_TOOLCHAIN_TEXT_CASES_H
#define HONE_TESTS_TOOLCHAIN_TEXT_CASES_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>

#include "testing/testing.h"

namespace hone::testing {

inline void replay(const fs::path& file,
                   const std::function<std::string(const std::string& name, const std::string& input)>& run) {
  const auto text = read_file(file);
  HONE_ASSERT_OK(text);
  std::istringstream in(*text);
  std::string made, name, input;
  int cases = 0;
  auto flush = [&] {
    if (name.empty()) return;
    ++cases;
    std::istringstream lines(run(name, input));
    for (std::string line; std::getline(lines, line);) made += "< " + line + "\n";
    name.clear();
    input.clear();
  };
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("< ") || line == "<") continue;
    if (line.starts_with("> ") || line == ">") {
      input += line.size() > 2 ? line.substr(2) : "";
      input += '\n';
    } else {
      flush();
      if (line.starts_with("== ")) name = line.substr(3);
    }
    made += line + "\n";
  }
  flush();
  EXPECT_GT(cases, 0) << file;
  if (made == *text) return;
  const char* update = std::getenv("HONE_UPDATE");
  if (update != nullptr && std::string(update) == "1") {
    HONE_ASSERT_OK(write_file_atomic(file, made));
    return;
  }
  std::istringstream was(*text), is(made);
  int number = 0;
  for (std::string a, b; static_cast<bool>(std::getline(was, a)) | static_cast<bool>(std::getline(is, b));) {
    ++number;
    ASSERT_EQ(a, b) << file.string() << ":" << number << " (expected, then what came)";
  }
}

}  // namespace hone::testing

#endif
