// Lines from a descriptor, each bounded: a line that is longer than the limit is dropped unread and said to be.
#ifndef HONE_MCP_LINES_H
#define HONE_MCP_LINES_H

#include <atomic>
#include <string>

namespace hone::mcp {

class LineReader {
 public:
  LineReader(int fd, std::size_t limit_bytes) : fd_(fd), limit_(limit_bytes) {}

  // Waits; `stop` turning true ends it. `line` is without its end, also without a carriage return before it. The last line
  // needs no end. Memory stays below the limit and one buffer.
  enum class Got { line, too_long, end };
  Got next(std::string& line, const std::atomic<bool>& stop);

 private:
  bool fill(const std::atomic<bool>& stop);   // false: nothing comes any more

  int fd_;
  std::size_t limit_;
  std::string buffer_;
  std::size_t scanned_ = 0;                   // bytes of the buffer known to hold no line end
  bool ended_ = false;
};

}  // namespace hone::mcp

#endif
