// Files: whole reads, crash-safe writes, scratch folders, locks, and where Hone's folders are.
#ifndef HONE_BASE_FS_H
#define HONE_BASE_FS_H

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

namespace fs = std::filesystem;

// Errors of this header are of kind io and name the path and the system's reason; where there is
// no space or no permission, they say which variable moves the path. `action` is a verb: "read".
Error io_error(std::string_view action, const fs::path& path, int code = errno);
Result<std::string> read_file(const fs::path& path, std::size_t limit_bytes = std::size_t{1} << 30);
// Writes beside the target, syncs, renames: readers see the old or the new bytes, never a part.
Result<> write_file_atomic(const fs::path& path, std::string_view bytes, unsigned mode = 0644);
// For files that nobody else reads while they are written. `to` is replaced.
Result<> copy_file(const fs::path& from, const fs::path& to, unsigned mode);
Result<> make_dirs(const fs::path& path);
// Removes a tree; missing is fine. Never follows links.
Result<> remove_tree(const fs::path& path);

// Every regular file below `root` by its path relative to it ("/" separated). Hidden files and
// links that leave `root` are refused with an error; limits guard against huge trees.
struct TreeLimits {
  std::size_t files = 256;
  std::size_t bytes = std::size_t{64} << 20;
};
Result<std::map<std::string, std::string>> read_tree(const fs::path& root, TreeLimits limits = {});

// A fresh private folder, removed with everything in it at the end of its life. Folders in the system's temp
// folder that a killed process of this user left behind are removed by a later one.
class ScratchDir {
 public:
  static Result<ScratchDir> create(const fs::path& parent = {});   // default: the system's temp folder
  ScratchDir(ScratchDir&& other) noexcept : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  ScratchDir& operator=(ScratchDir&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    return *this;
  }
  ~ScratchDir();
  const fs::path& path() const { return path_; }

 private:
  ScratchDir(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  fs::path path_;
  int lock_ = -1;
};

// An exclusive advisory lock on a file (flock): released at the end of its life or of the process,
// kill -9 included.
class FileLock {
 public:
  static Result<FileLock> acquire(const fs::path& path);
  // An empty optional-like Result: error kind io with message "busy" when another process holds it.
  static Result<FileLock> try_acquire(const fs::path& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept { std::swap(fd_, other.fd_); return *this; }
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// One read of a folder table per process; HONE_HOME puts data, cache and config under one folder.
fs::path data_dir();     // $HONE_HOME/data   or $XDG_DATA_HOME/hone   or ~/.local/share/hone
fs::path cache_dir();    // $HONE_HOME/cache  or $XDG_CACHE_HOME/hone  or ~/.cache/hone
fs::path config_dir();   // $HONE_HOME/config or $XDG_CONFIG_HOME/hone or ~/.config/hone
// share/hone of this installation: $HONE_SHARE, else ../share/hone or share/hone seen from the
// running binary. Error kind environment when none holds include/hone/plan.h.
Result<fs::path> share_dir();

}  // namespace hone

#endif
