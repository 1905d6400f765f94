// RUN/trace/: what agents did, one JSON object a line, in files that are rotated and bounded in size and number. A help for
// people; no decision is made from it.
#ifndef HONE_FLOW_TRACE_H
#define HONE_FLOW_TRACE_H

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

struct TraceLimits {
  std::uint64_t file_bytes = std::uint64_t{8} << 20;
  int files = 8;                         // the oldest goes when there are more
};

// time, elapsed_s, turn, attempt, role, agent, kind and what the kind has: text, tool, usage; of `end`: end, cause, reason.
class Trace {
 public:
  static Result<Trace> open(const fs::path& folder, TraceLimits limits = {});
  Trace(Trace&& other) noexcept;
  Trace& operator=(Trace&&) = delete;
  ~Trace();
  // Any thread. False when it could not be written: the run goes on without.
  bool write(nlohmann::json event);

 private:
  Trace(fs::path folder, TraceLimits limits) : folder_(std::move(folder)), limits_(limits) {}
  bool next_file();

  fs::path folder_;
  TraceLimits limits_;
  std::mutex mutex_;
  int fd_ = -1, number_ = 0;
  std::uint64_t size_ = 0;
};

std::vector<fs::path> trace_files(const fs::path& folder);   // oldest first
// The newest `count` events, oldest of them first; damaged lines are left out.
std::vector<nlohmann::json> last_events(const fs::path& folder, std::size_t count);

}  // namespace hone

#endif
