// What one command of the CLI11 tree says of itself. Help texts, man pages and shell completions are
// all made from pages, so that they cannot disagree with what is parsed.
#ifndef HONE_CLI_PAGE_H
#define HONE_CLI_PAGE_H

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct PageOption {
  std::vector<std::string> names;      // "-n", "--name"; empty for a positional
  std::string value;                   // "TEXT", "CANDIDATE"; empty for a switch
  std::vector<std::string> choices;    // when only these values are allowed
  std::string text, fallback;          // fallback: the default, as text
  bool required = false, repeatable = false;
};

struct Page {
  std::string path;                    // "hone task show"
  std::string name, summary, example;
  std::vector<PageOption> positionals, flags;
  std::vector<PageOption> global;      // flags of every verb; empty on the root's own page
  std::vector<Page> commands;          // in the order of definition; hidden ones left out
};

Page page_of(const CLI::App& app);

std::string help_text(const Page& page);
// By file name: hone.1, hone-bench.1, ... `version` goes into the footer.
std::map<std::string, std::string> man_pages(const Page& root, const std::string& version);
// Shells: bash, zsh, fish.
std::string completion_script(const Page& root, const std::string& shell);

}  // namespace hone::cli

#endif
