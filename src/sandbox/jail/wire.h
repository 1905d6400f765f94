// What Hone and hone-jail say to each other. Both are of one build; the version guards a mixed copy.
//
// Hone starts hone-jail with fixed descriptors: 0-2 the program's, 3 a SOCK_SEQPACKET socket for
// messages, 4 the read end of the lifeline (its end of file means: Hone is gone or wants the end),
// 5 a file with the order, 6 and up the descriptors to hand on.
#ifndef HONE_SANDBOX_JAIL_WIRE_H
#define HONE_SANDBOX_JAIL_WIRE_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hone::jail {

inline constexpr std::uint64_t kWireVersion = 1;
inline constexpr int kStatusFd = 3, kLifelineFd = 4, kOrderFd = 5, kFirstFd = 6;

struct OrderMount {
  std::string host, inside;
  bool writable = false;
};

struct Order {
  bool isolate = true;    // false: --sandbox=off
  bool compute = false;   // SyscallPolicy::compute, else tools
  bool tools = true;
  std::uint64_t memory_bytes = 0, file_bytes = 0, tmp_bytes = 0, cpu_s = 0, processes = 0,
                open_files = 0;   // 0: no limit
  std::string cwd;
  std::vector<std::string> argv, env;
  std::vector<OrderMount> mounts;
  std::vector<std::uint64_t> fds;   // the i-th is kFirstFd + i here and fds[i] in the program
};

// Whose fault it is that a program did not start.
enum class Fault : std::uint32_t {
  refused,   // the machine refuses a facility: the sandbox is not to be had
  io,        // a mount's host path is missing or unreadable
  program,   // the program or its working folder is not there
};

struct Message {
  enum Kind : std::uint32_t { hello, started, ended, failed };
  Kind kind = hello;              // hello comes from the program's process itself: its sender is its pid
  Fault fault = Fault::refused;   // failed
  std::int32_t error = 0;         // failed: errno
  std::int32_t wait_status = 0;   // ended: as of waitpid
  char facility[64] = {};         // failed: "user namespaces"
  char detail[512] = {};          // failed: what was tried
};

inline void put_text(char* field, std::size_t size, std::string_view text) {
  const std::size_t n = text.size() < size - 1 ? text.size() : size - 1;
  std::memcpy(field, text.data(), n);
  field[n] = '\0';
}

class Writer {
 public:
  void number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes_.size() < sizeof value) {
      failed_ = true;
      bytes_ = {};
      return 0;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    std::string value(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return value;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> values;
    for (std::uint64_t n = number(); n > 0 && !failed_; --n) values.push_back(text());
    return values;
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

inline std::string encode(const Order& order) {
  Writer out;
  out.number(kWireVersion);
  out.number((order.isolate ? 1u : 0u) | (order.compute ? 2u : 0u) | (order.tools ? 4u : 0u));
  for (std::uint64_t limit :
       {order.memory_bytes, order.file_bytes, order.tmp_bytes, order.cpu_s, order.processes, order.open_files})
    out.number(limit);
  out.text(order.cwd);
  out.texts(order.argv);
  out.texts(order.env);
  out.number(order.mounts.size());
  for (const OrderMount& mount : order.mounts) {
    out.text(mount.host);
    out.text(mount.inside);
    out.number(mount.writable ? 1 : 0);
  }
  out.number(order.fds.size());
  for (std::uint64_t fd : order.fds) out.number(fd);
  return out.take();
}

// False when the bytes are of another version or torn.
inline bool decode(std::string_view bytes, Order& order) {
  Reader in(bytes);
  if (in.number() != kWireVersion) return false;
  const std::uint64_t flags = in.number();
  order.isolate = (flags & 1) != 0;
  order.compute = (flags & 2) != 0;
  order.tools = (flags & 4) != 0;
  for (std::uint64_t* limit :
       {&order.memory_bytes, &order.file_bytes, &order.tmp_bytes, &order.cpu_s, &order.processes, &order.open_files})
    *limit = in.number();
  order.cwd = in.text();
  order.argv = in.texts();
  order.env = in.texts();
  for (std::uint64_t n = in.number(); n > 0 && !in.failed(); --n) {
    OrderMount mount;
    mount.host = in.text();
    mount.inside = in.text();
    mount.writable = in.number() != 0;
    order.mounts.push_back(std::move(mount));
  }
  for (std::uint64_t n = in.number(); n > 0 && !in.failed(); --n) order.fds.push_back(in.number());
  return !in.failed() && !order.argv.empty();
}

}  // namespace hone::jail

#endif
