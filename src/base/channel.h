// JSON objects, one a line, over a socket between two processes. A stranger's lines are bounded by `longest_line`.
#ifndef HONE_BASE_CHANNEL_H
#define HONE_BASE_CHANNEL_H

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

namespace hone {

class Channel {
 public:
  explicit Channel(int fd, std::size_t longest_line = std::size_t{512} << 20) : fd_(fd), longest_line_(longest_line) {}
  Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)), longest_line_(other.longest_line_), read_(std::move(other.read_)) {}
  ~Channel();

  // Both ends of a new one; the second is handed to a child. Kind environment.
  static Result<std::pair<Channel, Channel>> pair();

  int fd() const { return fd_; }
  // Any thread. False: the other end is gone.
  bool send(const nlohmann::json& message);
  enum class Got { message, nothing, closed };
  // One thread. Waits up to `timeout_s` (below 0: without end). Damage counts as closed.
  Got receive(nlohmann::json& message, double timeout_s);

 private:
  int fd_;
  std::size_t longest_line_;
  std::mutex sending_;
  std::string read_;
  std::size_t scanned_ = 0;
};

}  // namespace hone

#endif
