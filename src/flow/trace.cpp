#include "flow/trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/clock.h"

namespace hone {
namespace {

constexpr std::size_t kLongestEvent = std::size_t{64} << 10;

fs::path file_of(const fs::path& folder, int number) { return folder / fmt::format("trace-{:06}.jsonl", number); }

int number_of(const fs::path& file) { return std::atoi(file.filename().string().substr(6).c_str()); }

}  // namespace

std::vector<fs::path> trace_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const fs::directory_entry& each : fs::directory_iterator(folder, code)) {
    const std::string name = each.path().filename().string();
    if (name.starts_with("trace-") && name.ends_with(".jsonl") && each.is_regular_file(code)) files.push_back(each.path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return number_of(a) < number_of(b); });
  return files;
}

std::vector<nlohmann::json> last_events(const fs::path& folder, std::size_t count) {
  std::vector<nlohmann::json> events;   // newest first
  const auto files = trace_files(folder);
  for (auto file = files.rbegin(); file != files.rend() && events.size() < count; ++file) {
    const auto text = read_file(*file, std::size_t{256} << 20);
    if (!text) continue;
    std::size_t end = text->rfind('\n');
    while (end != std::string::npos && events.size() < count) {
      const std::size_t before = end == 0 ? std::string::npos : text->rfind('\n', end - 1);
      const std::size_t start = before == std::string::npos ? 0 : before + 1;
      nlohmann::json event = nlohmann::json::parse(text->substr(start, end - start), nullptr, false);
      if (event.is_object()) events.push_back(std::move(event));
      end = before;
    }
  }
  std::reverse(events.begin(), events.end());
  return events;
}

Result<Trace> Trace::open(const fs::path& folder, TraceLimits limits) {
  HONE_CHECK(make_dirs(folder));
  Trace trace(folder, limits);
  const auto files = trace_files(folder);
  if (files.empty()) {
    if (!trace.next_file()) return fail(io_error("write", folder));
    return trace;
  }
  trace.number_ = number_of(files.back());
  trace.fd_ = ::open(files.back().c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  struct stat info = {};
  if (trace.fd_ < 0 || ::fstat(trace.fd_, &info) != 0) return fail(io_error("write", files.back()));
  trace.size_ = static_cast<std::uint64_t>(info.st_size);
  // A kill may have left half a line.
  char last = '\n';
  if (trace.size_ > 0 && ::pread(trace.fd_, &last, 1, info.st_size - 1) == 1 && last != '\n' && ::write(trace.fd_, "\n", 1) == 1) ++trace.size_;
  return trace;
}

Trace::Trace(Trace&& other) noexcept
    : folder_(std::move(other.folder_)), limits_(other.limits_), fd_(std::exchange(other.fd_, -1)), number_(other.number_), size_(other.size_) {}

Trace::~Trace() {
  if (fd_ >= 0) ::close(fd_);
}

bool Trace::next_file() {
  const int fd = ::open(file_of(folder_, ++number_).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  size_ = 0;
  const auto files = trace_files(folder_);
  std::error_code code;
  for (std::size_t i = 0; i + static_cast<std::size_t>(std::max(limits_.files, 1)) < files.size(); ++i) fs::remove(files[i], code);
  return true;
}

bool Trace::write(nlohmann::json event) {
  if (!event.contains("time")) event["time"] = utc_timestamp();
  std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (line.size() > kLongestEvent) {
    event["text"] = "(too long for the trace)";
    event.erase("tool");
    line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  line += '\n';
  const std::lock_guard held(mutex_);
  if (size_ > 0 && size_ + line.size() > limits_.file_bytes && !next_file()) return false;
  ssize_t n;
  do n = ::write(fd_, line.data(), line.size());
  while (n < 0 && errno == EINTR);
  if (n > 0) size_ += static_cast<std::uint64_t>(n);
  return n == static_cast<ssize_t>(line.size());
}

}  // namespace hone
