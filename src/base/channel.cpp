#include "base/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.h"

namespace hone {

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::pair<Channel, Channel>> Channel::pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return fail(ErrorKind::environment, "no socket pair: {}", std::strerror(errno));
  return std::pair<Channel, Channel>(Channel(fds[0]), Channel(fds[1]));
}

bool Channel::send(const nlohmann::json& message) {
  std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  line += '\n';
  const std::lock_guard lock(sending_);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::send(fd_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

Channel::Got Channel::receive(nlohmann::json& message, double timeout_s) {
  const double end = now_s() + timeout_s;
  for (;;) {
    if (const std::size_t line = read_.find('\n', scanned_); line != std::string::npos) {
      if (line > longest_line_) return Got::closed;
      message = nlohmann::json::parse(read_.begin(), read_.begin() + static_cast<std::ptrdiff_t>(line), nullptr, false);
      read_.erase(0, line + 1);
      scanned_ = 0;
      return message.is_object() ? Got::message : Got::closed;
    }
    scanned_ = read_.size();
    if (read_.size() > longest_line_) return Got::closed;
    const double left = end - now_s();
    pollfd wait = {fd_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, timeout_s < 0 ? -1 : std::max(0, static_cast<int>(std::ceil(left * 1e3))));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Got::nothing;
    char buffer[65536];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Got::closed;
    read_.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace hone
