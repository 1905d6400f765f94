// tests/cases/cli/*.txt: command lines with what they print. HONE_UPDATE=1 rewrites the files.
//
//   # a comment
//   $ hone bnech            the command; words in "double quotes" keep their spaces
//   | text                  a line of standard output
//   ! text                  a line of standard error
//   = 2                     the exit code
#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "cli/app.h"
#include "cli/page.h"
#include "testing/command.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

fs::path case_dir() { return source_dir() / "tests/cases/cli"; }

bool updating() {
  const char* value = std::getenv("HONE_UPDATE");
  return value != nullptr && std::string_view(value) == "1";
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool open = false, any = false;
  for (const char c : line) {
    if (c == '"') {
      open = !open;
      any = true;
    } else if (c == ' ' && !open) {
      if (any || !word.empty()) words.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(word);
  return words;
}

std::string prefixed(const std::string& text, const std::string& prefix) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += prefix + (line.empty() ? "" : " " + line) + "\n";
  return out;
}

// The file with every expectation replaced by what the commands really print.
std::string replayed(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("|") || line.starts_with("!") || line.starts_with("=")) continue;
    out += line + "\n";
    if (!line.starts_with("$ hone")) continue;
    std::vector<std::string> words = words_of(line.substr(2));
    words.erase(words.begin());
    const CommandResult result = run_hone(words);
    out += prefixed(result.out, "|") + prefixed(result.err, "!") + "= " + std::to_string(result.exit) + "\n";
  }
  return out;
}

void hold(const fs::path& file) {
  const auto text = read_file(file);
  HONE_ASSERT_OK(text);
  const std::string now = replayed(*text);
  if (!updating()) {
    EXPECT_EQ(*text, now) << file << "\nHONE_UPDATE=1 rewrites it";
  } else if (now != *text) {
    HONE_ASSERT_OK(write_file_atomic(file, now));
  }
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::set<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".txt") out.insert(entry.path());
  return {out.begin(), out.end()};
}

TEST(CliCases, PrintWhatTheFilesSay) {
  const auto files = files_in(case_dir());
  ASSERT_GE(files.size(), 2u);
  for (const fs::path& file : files) hold(file);
}

void collect(const cli::Page& page, std::vector<cli::Page>& out) {
  out.push_back(page);
  for (const cli::Page& command : page.commands) collect(command, out);
}

// One snapshot a command: a new verb or sub-command without one fails here.
TEST(CliHelp, EveryCommandHasASnapshotAndAnExample) {
  cli::Invocation invocation;
  const auto app = cli::make_app(invocation);
  std::vector<cli::Page> pages;
  collect(cli::page_of(*app), pages);
  std::set<fs::path> wanted;
  for (const cli::Page& page : pages) {
    std::string name = page.path;
    for (char& c : name) c = c == ' ' ? '-' : c;
    const fs::path file = case_dir() / "help" / (name + ".txt");
    wanted.insert(file);
    if (updating() && !fs::exists(file)) {
      fs::create_directories(file.parent_path());
      HONE_ASSERT_OK(write_file_atomic(file, "$ " + page.path + " --help\n"));
    }
    EXPECT_TRUE(page.example.starts_with(page.path)) << page.path << " has no example of its own: `" << page.example << "`";
    EXPECT_FALSE(page.summary.empty()) << page.path;
    for (const std::string& word : words_of(page.example))
      EXPECT_TRUE(!word.starts_with("kernels/") || fs::exists(source_dir() / word)) << page.example;
    for (const auto* list : {&page.flags, &page.positionals})
      for (const cli::PageOption& option : *list) EXPECT_FALSE(option.text.empty()) << page.path << " " << option.value;
    hold(file);
  }
  for (const fs::path& file : files_in(case_dir() / "help")) EXPECT_TRUE(wanted.contains(file)) << file << " belongs to no command";
}

}  // namespace
}  // namespace hone::testing
