// The CLI11 tree made from the table of verbs, and what is said of a command line that it refuses.
#ifndef HONE_CLI_APP_H
#define HONE_CLI_APP_H

#include <memory>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace hone::cli {

// `invocation` must outlive the tree.
std::unique_ptr<CLI::App> make_app(Invocation& invocation);

struct Outcome {
  bool done = false;        // help or version was asked for and printed
};
// Parses the arguments (without the program's name) into `invocation`. Errors of kind usage name the
// unknown verb or flag, suggest the nearest one and say where help is.
Result<Outcome> parse(CLI::App& app, const std::vector<std::string>& arguments);

// Of the table: what this program can do.
std::vector<std::string> verb_names();

}  // namespace hone::cli

#endif
