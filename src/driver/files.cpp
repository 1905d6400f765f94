#include "driver/files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hone {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool below(const fs::path& path, const fs::path& folder) {
  const auto [a, b] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return a == folder.end() || (std::next(a) == folder.end() && a->empty());
}

int open_below(int folder, const fs::path& path, int flags) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  if ((flags & O_CREAT) != 0) how.mode = 0644;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
}

Error outside(const fs::path& path) {
  return make_error(ErrorKind::forbidden, "{} lies outside the folder of the turn", path.string());
}

}  // namespace

Enclosure::Enclosure(const fs::path& folder, std::vector<fs::path> hidden) : hidden_(std::move(hidden)) {
  std::error_code code;
  folder_ = fs::weakly_canonical(folder, code);
}

bool Enclosure::holds(const fs::path& path) const {
  std::error_code code;
  const fs::path real = fs::weakly_canonical(folder_ / path, code);
  if (code || !below(real, folder_)) return false;
  return std::none_of(hidden_.begin(), hidden_.end(), [&](const fs::path& each) { return below(real, fs::weakly_canonical(each, code)); });
}

// A regular file below the folder. What lies there may change at any moment: the kernel decides at the open, and what was
// opened is asked for its own name.
Result<int> Enclosure::open(const fs::path& path, int flags) const {
  if (!holds(path)) return fail(outside(path));
  fs::path relative = path.is_absolute() ? path.lexically_normal().lexically_relative(folder_) : path.lexically_normal();
  std::error_code code;
  if (relative.empty() || *relative.begin() == "..") relative = fs::weakly_canonical(path, code).lexically_relative(folder_);   // by another name
  const Fd folder(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return fail(io_error("open", folder_));
  if ((flags & O_CREAT) != 0) {
    fs::path made;
    for (const fs::path& part : relative.parent_path()) {
      const Fd above(open_below(folder.get(), made.empty() ? "." : made, O_PATH | O_DIRECTORY));
      if (above.get() >= 0) ::mkdirat(above.get(), part.c_str(), 0755);   // what fails here fails again at the open
      made /= part;
    }
  }
  Fd file(open_below(folder.get(), relative, flags | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return errno == EXDEV ? fail(outside(path)) : fail(io_error("open", path));
  struct stat about = {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return fail(ErrorKind::io, "{} is no regular file", path.string());
  if (!holds(fs::read_symlink("/proc/self/fd/" + std::to_string(file.get()), code))) return fail(outside(path));
  return file.release();
}

Result<std::string> Enclosure::read(const fs::path& path, std::int64_t line, std::optional<std::int64_t> count) const {
  HONE_TRY(const int opened, open(path, O_RDONLY));
  const Fd file(opened);
  std::string text;
  char buffer[65536];
  for (ssize_t n = 0; (n = ::read(file.get(), buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_error("read", path));
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > kLimit) return fail(ErrorKind::output_limit, "{} is larger than {} MiB", path.string(), kLimit >> 20);
  }
  std::size_t begin = 0;
  for (; line > 1 && begin < text.size(); --line) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  std::size_t end = begin;
  for (std::int64_t left = count.value_or(std::int64_t{1} << 40); left > 0 && end < text.size(); --left) end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.substr(begin, end - begin);
}

Result<> Enclosure::write(const fs::path& path, std::string_view text) const {
  if (text.size() > kLimit) return fail(ErrorKind::output_limit, "more than {} MiB for {}", kLimit >> 20, path.string());
  HONE_TRY(const int opened, open(path, O_WRONLY | O_CREAT));
  const Fd file(opened);
  if (::ftruncate(file.get(), 0) != 0) return fail(io_error("empty", path));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(io_error("write", path));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace hone
