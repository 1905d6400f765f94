// Drives the built `hone` as a person would, in folders of its own.
#ifndef HONE_TESTS_COMMAND_H
#define HONE_TESTS_COMMAND_H

#include <map>
#include <string>
#include <vector>

#include "base/fs.h"

namespace hone::testing {

struct CommandResult {
  int exit = -1;            // -1 when it died of a signal
  int signal = 0;
  std::string out, err;
  double seconds = 0;
  std::uint64_t max_rss_bytes = 0;
};

struct CommandOptions {
  fs::path binary;                           // default: the built one
  fs::path home;                             // data and configuration; default: one scratch folder a process
  fs::path cache;                            // default: one a build tree, so that artefacts are compiled once
  fs::path cwd;
  std::map<std::string, std::string> env;    // besides PATH and HOME; an empty value is left out
  double timeout_s = 120;
};

CommandResult run_hone(const std::vector<std::string>& arguments, const CommandOptions& options = {});

}  // namespace hone::testing

#endif
