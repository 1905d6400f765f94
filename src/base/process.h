// Runs a program to its end: bounded output, bounded time, its whole process group ended.
#ifndef HONE_BASE_PROCESS_H
#define HONE_BASE_PROCESS_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace hone {

struct ProcessSpec {
  std::vector<std::string> argv;                    // argv[0] is a path, or searched in PATH
  std::vector<std::string> env;                     // "NAME=value"; the child sees nothing else
  std::string cwd;                                  // empty: this process's
  std::string stdin_text;                           // then end of file
  std::vector<std::pair<int, int>> fds;             // {here, there}: descriptors handed on
  double timeout_s = 60;                            // then SIGKILL to the group
  std::size_t stdout_limit = std::size_t{1} << 20;  // bytes kept; what comes after is counted
  std::size_t stderr_limit = std::size_t{1} << 20;
  std::size_t output_kill = std::size_t{64} << 20;  // bytes of both after which the group is killed
  const std::atomic<bool>* cancel = nullptr;        // when it turns true the group is killed
  double stop_s = 0;                                // above 0: by `cancel` the leader gets SIGINT and this long first
  std::function<void(std::string_view)> on_err;     // bytes of standard error as they come, besides being kept
};

struct ProcessOutcome {
  int exit_code = -1;             // -1 when it died of a signal
  int signal = 0;
  bool timed_out = false;
  bool flooded = false;           // killed for passing output_kill
  bool cancelled = false;
  std::string out, err;
  std::uint64_t out_dropped = 0, err_dropped = 0;
  double wall_s = 0;
  std::uint64_t max_rss_bytes = 0;

  bool ok() const { return exit_code == 0; }
};

// An error only when the program could not be started (kind environment).
Result<ProcessOutcome> run_process(const ProcessSpec& spec);

// The path of a program in PATH, or empty.
std::string find_program(const std::string& name);

}  // namespace hone

#endif
