#include "mcp/lines.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hone::mcp {

bool LineReader::fill(const std::atomic<bool>& stop) {
  char bytes[65536];
  while (!ended_ && !stop.load()) {
    pollfd wait = {fd_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, 100);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ::read(fd_, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) break;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  ended_ = true;
  return false;
}

LineReader::Got LineReader::next(std::string& line, const std::atomic<bool>& stop) {
  bool dropping = false;
  for (;;) {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) {
      const bool fits = !dropping && end <= limit_;
      if (fits) line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      scanned_ = 0;
      if (!fits) return Got::too_long;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return Got::line;
    }
    scanned_ = buffer_.size();
    if (buffer_.size() > limit_) {
      dropping = true;
      std::string().swap(buffer_);
      scanned_ = 0;
    }
    if (!fill(stop)) {
      if (dropping) return Got::too_long;
      if (stop.load() || buffer_.empty()) return Got::end;
      line = std::exchange(buffer_, {});
      scanned_ = 0;
      return Got::line;
    }
  }
}

}  // namespace hone::mcp
