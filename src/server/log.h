// Structured lines: one JSON object each, to standard error, and to the audit log, a file that is rotated.
// Secrets never come here: callers log ids.
#ifndef HONE_SERVER_LOG_H
#define HONE_SERVER_LOG_H

#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fs.h"

namespace hone::server {

class Log {
 public:
  explicit Log(bool quiet) : quiet_(quiet) {}
  ~Log();
  // The audit log: `file`, and up to `kept` older ones beside it when it grows past `bytes`. Kind io.
  Result<> open_audit(const fs::path& file, std::uint64_t bytes = std::uint64_t{16} << 20, int kept = 5);

  // {"time", "level", "event", ...}
  void write(const char* level, const std::string& event, nlohmann::json data);
  void info(const std::string& event, nlohmann::json data) { write("info", event, std::move(data)); }
  void warn(const std::string& event, nlohmann::json data) { write("warning", event, std::move(data)); }
  void audit(nlohmann::json data);

 private:
  void rotate();
  const bool quiet_;
  std::mutex mutex_;
  fs::path file_;
  int fd_ = -1;
  std::uint64_t size_ = 0, limit_ = 0;
  int kept_ = 0;
};

}  // namespace hone::server

#endif
