#include "run/safe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hone {
namespace {

fs::path temp_folder() {
  std::error_code code;
  const fs::path folder = fs::temp_directory_path(code);
  return code ? fs::path("/tmp") : folder;
}

// The time of the last change of an inode cannot be set by hand.
bool untouched(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

Result<Safe> Safe::create() {
  const fs::path folder = temp_folder();
  std::string name = (folder / "hone-safe-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return fail(io_error("write", folder));
  ::unlink(name.c_str());
  return Safe(fd);
}

Safe::~Safe() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> Safe::keep(const fs::path& path) {
  if (kept_.count(path) != 0) return {};
  Copy copy;
  if (::lstat(path.c_str(), &copy.seen) != 0) return fail(io_error("read", path));
  HONE_TRY(const std::string bytes, read_file(path));
  copy.offset = end_;
  copy.size = bytes.size();
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(io_error("write", temp_folder()));
    done += static_cast<std::size_t>(n);
  }
  end_ += bytes.size();
  kept_[path] = copy;
  return {};
}

Result<> Safe::keep_folder(const fs::path& folder) {
  std::error_code code;
  for (const fs::directory_entry& each : fs::directory_iterator(folder, code))
    if (each.is_regular_file(code) && !each.path().filename().string().starts_with('.')) HONE_CHECK(keep(each.path()));
  return {};
}

Result<std::string> Safe::bytes_of(const Copy& copy) const {
  std::string bytes(copy.size, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(copy.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(io_error("read", temp_folder()));
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

Result<std::vector<fs::path>> Safe::mend() {
  std::vector<fs::path> mended;
  for (auto& [path, copy] : kept_) {
    struct stat now = {};
    const bool there = ::lstat(path.c_str(), &now) == 0;
    if (there && untouched(now, copy.seen)) continue;
    HONE_TRY(const std::string bytes, bytes_of(copy));
    if (there && S_ISREG(now.st_mode)) {
      const auto found = read_file(path);
      if (found && *found == bytes) {
        copy.seen = now;
        continue;
      }
    }
    if (there && !S_ISREG(now.st_mode)) HONE_CHECK(remove_tree(path));
    HONE_CHECK(make_dirs(path.parent_path()));
    HONE_CHECK(write_file_atomic(path, bytes));
    if (::lstat(path.c_str(), &copy.seen) != 0) return fail(io_error("read", path));
    mended.push_back(path);
  }
  return mended;
}

}  // namespace hone
