#include "mcp/stdio.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <algorithm>
#include <cstring>

#include "mcp/lines.h"

namespace hone::mcp {
namespace {

// Whole lines from any thread. A client that reads nothing blocks them, but not for longer than the server is wanted.
class LineWriter {
 public:
  LineWriter(int fd, const std::atomic<bool>& stop) : fd_(fd), stop_(stop) {}

  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    std::string_view left = line;
    while (!left.empty() && !broken_.load()) {
      pollfd wait = {fd_, POLLOUT, 0};
      const int ready = ::poll(&wait, 1, 100);
      if (ready == 0 && (stop_.load() || ended_.load())) broken_.store(true);
      if (ready <= 0) continue;
      // A pipe that is ready takes this much without blocking.
      const ssize_t n = ::write(fd_, left.data(), std::min<std::size_t>(left.size(), PIPE_BUF));
      if (n >= 0) left.remove_prefix(static_cast<std::size_t>(n));
      else if (errno != EINTR && errno != EAGAIN) broken_.store(true);
    }
  }
  // From now on nobody is waited for who does not read.
  void end() { ended_.store(true); }
  bool broken() const { return broken_.load(); }

 private:
  const int fd_;
  const std::atomic<bool>& stop_;
  std::atomic<bool> broken_{false}, ended_{false};
  std::mutex mutex_;
};

}  // namespace

Result<> serve_stdio(ServerOptions options, const std::atomic<bool>& stop) {
  const int out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (out < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return fail(ErrorKind::environment, "standard output: {}", std::strerror(errno));
  LineWriter writer(out, stop);
  options.send = [&writer](const nlohmann::json& message) { writer.write(to_line(message) + "\n"); };
  {
    Server server(std::move(options));
    LineReader reader(STDIN_FILENO, kLongestLine);
    std::string line;
    for (bool more = true; more && !writer.broken();) {
      switch (reader.next(line, stop)) {
        case LineReader::Got::line: server.receive(line); break;
        case LineReader::Got::too_long: server.too_long(); break;
        case LineReader::Got::end: more = false; break;
      }
    }
    writer.end();
    server.stop();
  }
  ::close(out);
  return {};
}

}  // namespace hone::mcp
