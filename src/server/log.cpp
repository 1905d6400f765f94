#include "server/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/clock.h"

namespace hone::server {
namespace {

std::string line_of(nlohmann::json data) {
  data["time"] = utc_timestamp();
  return data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Log::~Log() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> Log::open_audit(const fs::path& file, std::uint64_t bytes, int kept) {
  HONE_CHECK(make_dirs(file.parent_path()));
  const std::lock_guard lock(mutex_);
  file_ = file;
  limit_ = bytes;
  kept_ = kept;
  fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0) return fail(io_error("write the audit log", file));
  struct stat info = {};
  if (::fstat(fd_, &info) == 0) size_ = static_cast<std::uint64_t>(info.st_size);
  return {};
}

void Log::write(const char* level, const std::string& event, nlohmann::json data) {
  if (quiet_) return;
  data["level"] = level;
  data["event"] = event;
  const std::string line = line_of(std::move(data));
  const std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Log::audit(nlohmann::json data) {
  const std::string line = line_of(std::move(data));
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  if (size_ > 0 && size_ + line.size() > limit_) rotate();
  if (fd_ >= 0 && ::write(fd_, line.data(), line.size()) > 0) size_ += line.size();
}

void Log::rotate() {
  ::close(fd_);
  std::error_code code;
  for (int i = kept_ - 1; i >= 1; --i) fs::rename(file_.string() + "." + std::to_string(i), file_.string() + "." + std::to_string(i + 1), code);
  fs::rename(file_, file_.string() + ".1", code);
  fd_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  size_ = 0;
}

}  // namespace hone::server
