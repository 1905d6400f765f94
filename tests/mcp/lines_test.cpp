#include "mcp/lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace hone::mcp {
namespace {

// What a reader makes of these bytes, which come in pieces: a line, or "!" for one that was too long.
std::vector<std::string> read_all(const std::string& bytes, std::size_t limit, std::size_t piece) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    for (std::size_t at = 0; at < bytes.size(); at += piece) EXPECT_GT(::write(ends[1], bytes.data() + at, std::min(piece, bytes.size() - at)), 0);
    ::close(ends[1]);
  });
  LineReader reader(ends[0], limit);
  std::vector<std::string> out;
  const std::atomic<bool> stop{false};
  std::string line;
  for (bool more = true; more;) switch (reader.next(line, stop)) {
      case LineReader::Got::line: out.push_back(line); break;
      case LineReader::Got::too_long: out.emplace_back("!"); break;
      case LineReader::Got::end: more = false; break;
    }
  writer.join();
  ::close(ends[0]);
  return out;
}

TEST(Lines, AreWholeWhateverPiecesTheyComeIn) {
  const std::vector<std::string> expected{"one", "", "\xe2\x82\xac\xe2\x82\xac", "last"};
  for (const std::size_t piece : {1, 2, 3, 100}) EXPECT_EQ(read_all("one\r\n\n\xe2\x82\xac\xe2\x82\xac\nlast", 10, piece), expected) << piece;
}

TEST(Lines, ALongOneIsDroppedAndTheNextIsRead) {
  const std::vector<std::string> expected{"a", "!", "1234567890", "!"};
  for (const std::size_t piece : {1, 7, 100000})
    EXPECT_EQ(read_all("a\n" + std::string(300000, 'x') + "\n1234567890\n12345678901", 10, piece), expected) << piece;
}

TEST(Lines, AStopEndsTheWaiting) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<bool> stop{false};
  LineReader reader(ends[0], 10);
  std::thread stopper([&] { stop.store(true); });
  std::string line;
  EXPECT_EQ(reader.next(line, stop), LineReader::Got::end);
  stopper.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace hone::mcp
