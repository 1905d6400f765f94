#include "base/fs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>

namespace hone {
namespace {

struct Fd {
  int value;
  ~Fd() { if (value >= 0) ::close(value); }
};

Result<> write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_error("write", path));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

fs::path env_path(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? fs::path(value) : fs::path();
}

fs::path base_dir(const char* home_part, const char* xdg, const char* fallback) {
  if (const fs::path home = env_path("HONE_HOME"); !home.empty()) return home / home_part;
  if (const fs::path dir = env_path(xdg); !dir.empty()) return dir / "hone";
  const fs::path home = env_path("HOME");
  return (home.empty() ? fs::path("/tmp") : home) / fallback / "hone";
}

// The variable that moves `path` to another place: HONE_HOME, TMPDIR, or none for a path that the user named.
const char* variable_of(const fs::path& path) {
  const auto below = [&](const fs::path& folder) {
    const fs::path from = path.lexically_normal().lexically_relative(folder.lexically_normal());
    return !from.empty() && *from.begin() != "..";
  };
  const fs::path temp = env_path("TMPDIR");
  if (below(data_dir()) || below(cache_dir()) || below(config_dir())) return "HONE_HOME";
  return below(temp.empty() ? fs::path("/tmp") : temp) ? "TMPDIR" : nullptr;
}

}  // namespace

Error io_error(std::string_view action, const fs::path& path, int code) {
  Error error = make_error(ErrorKind::io, "cannot {} {}: {}", action, path.string(), std::strerror(code));
  error.place.file = path.string();
  const char* variable = action == "read" ? nullptr : variable_of(path);
  if (code == ENOSPC || code == EDQUOT)
    error.hint = variable == nullptr ? "free some space on its disk" : fmt::format("free some space, or set {} to a folder on another disk", variable);
  if ((code == EROFS || code == EACCES) && action != "read")
    error.hint = variable == nullptr ? "choose a folder that this user can write" : fmt::format("set {} to a folder that this user can write", variable);
  return error;
}

Result<std::string> read_file(const fs::path& path, std::size_t limit_bytes) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.value < 0) return fail(io_error("read", path));
  std::string bytes;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd.value, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_error("read", path));
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(n) > limit_bytes)
      return fail(make_error(ErrorKind::io, "{} is larger than {} bytes", path.string(), limit_bytes).at({path.string()}));
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<> write_file_atomic(const fs::path& path, std::string_view bytes, unsigned mode) {
  std::string name = (path.parent_path() / ("." + path.filename().string() + ".XXXXXX")).string();
  Fd fd{::mkostemp(name.data(), O_CLOEXEC)};
  if (fd.value < 0) return fail(io_error("write", path));
  auto abandon = [&](Error error) {
    ::unlink(name.c_str());
    return fail(std::move(error));
  };
  if (auto written = write_all(fd.value, bytes, path); !written) return abandon(written.error());
  if (::fchmod(fd.value, mode) != 0 || ::fsync(fd.value) != 0) return abandon(io_error("write", path));
  if (::rename(name.c_str(), path.c_str()) != 0) return abandon(io_error("write", path));
  // The rename itself survives a power cut only when the folder is synced too.
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (Fd dir{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}; dir.value >= 0) ::fsync(dir.value);
  return {};
}

Result<> copy_file(const fs::path& from, const fs::path& to, unsigned mode) {
  HONE_TRY(const std::string bytes, read_file(from));
  Fd fd{::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (fd.value < 0) return fail(io_error("write", to));
  HONE_CHECK(write_all(fd.value, bytes, to));
  if (::fchmod(fd.value, mode) != 0) return fail(io_error("write", to));
  return {};
}

Result<> make_dirs(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) return fail(io_error("create", path, code.value()));
  return {};
}

Result<> remove_tree(const fs::path& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) return fail(io_error("remove", path, code.value()));
  return {};
}

Result<std::map<std::string, std::string>> read_tree(const fs::path& root, TreeLimits limits) {
  std::map<std::string, std::string> files;
  std::error_code code;
  std::size_t total = 0;
  fs::recursive_directory_iterator it(root, code), end;
  if (code) return fail(io_error("read", root, code.value()));
  for (; it != end; it.increment(code)) {
    if (code) return fail(io_error("read", root, code.value()));
    const fs::path& path = it->path();
    if (path.filename().string().starts_with('.')) {
      if (it->is_directory(code)) it.disable_recursion_pending();
      continue;
    }
    if (it->is_symlink(code)) return fail(make_error(ErrorKind::contract, "{} is a link; copy the file instead", path.string()).at({path.string()}));
    if (it->is_directory(code)) continue;
    if (!it->is_regular_file(code)) return fail(make_error(ErrorKind::contract, "{} is not a regular file", path.string()).at({path.string()}));
    constexpr const char* kHint = "only sources belong here; hidden files and folders are not read";
    if (files.size() >= limits.files)
      return fail(make_error(ErrorKind::contract, "{} holds more than {} files", root.string(), limits.files).at({root.string()}).with_hint(kHint));
    // Before it is read: what is too much of a folder is no fault of the machine.
    const std::uintmax_t size = it->file_size(code);
    if (!code && total + size > limits.bytes)
      return fail(make_error(ErrorKind::contract, "{} holds more than {} MiB", root.string(), limits.bytes >> 20).at({path.string()}).with_hint(kHint));
    HONE_TRY(std::string bytes, read_file(path, limits.bytes));
    total += bytes.size();
    files.emplace(path.lexically_relative(root).generic_string(), std::move(bytes));
  }
  return files;
}

namespace {

constexpr std::string_view kScratchPrefix = "hone-scratch-";   // no name that a person would give to a folder of theirs
constexpr time_t kScratchGrace = 60;   // between a folder's making and its lock

// Removes this user's scratch folders whose process was killed: their locks went with it.
void sweep_scratch(const fs::path& base) {
  std::error_code code;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(base, code), end; !code && it != end; it.increment(code))
    if (it->path().filename().string().starts_with(kScratchPrefix)) stale.push_back(it->path());
  for (const fs::path& path : stale) {
    struct stat info = {};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) continue;
    if (::time(nullptr) - info.st_mtime < kScratchGrace) continue;
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    if (::flock(folder, LOCK_EX | LOCK_NB) == 0) (void)remove_tree(path);
    ::close(folder);
  }
}

}  // namespace

Result<ScratchDir> ScratchDir::create(const fs::path& parent) {
  std::error_code code;
  const fs::path base = parent.empty() ? fs::temp_directory_path(code) : parent;
  if (code) {
    const char* named = std::getenv("TMPDIR");
    Error error = io_error("use the temp folder", named != nullptr ? named : "/tmp", code.value());
    error.hint = "TMPDIR names another one";
    return fail(std::move(error));
  }
  HONE_CHECK(make_dirs(base));
  if (parent.empty()) {
    static std::mutex mutex;
    static std::set<fs::path> swept;
    const std::lock_guard lock(mutex);
    if (swept.insert(base).second) sweep_scratch(base);
  }
  std::string name = (base / (std::string(kScratchPrefix) + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) return fail(io_error("create a folder in", base));
  const int lock = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) (void)::flock(lock, LOCK_SH | LOCK_NB);
  return ScratchDir(fs::path(name), lock);
}

ScratchDir::~ScratchDir() {
  if (!path_.empty()) (void)remove_tree(path_);
  if (lock_ >= 0) ::close(lock_);
}

Result<FileLock> FileLock::acquire(const fs::path& path) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) return fail(io_error("lock", path));
  while (::flock(lock.fd_, LOCK_EX) != 0)
    if (errno != EINTR) return fail(io_error("lock", path));
  return lock;
}

Result<FileLock> FileLock::try_acquire(const fs::path& path) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) return fail(io_error("lock", path));
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return fail(make_error(ErrorKind::io, "busy").at({path.string()}));
    return fail(io_error("lock", path));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

fs::path data_dir() { return base_dir("data", "XDG_DATA_HOME", ".local/share"); }
fs::path cache_dir() { return base_dir("cache", "XDG_CACHE_HOME", ".cache"); }
fs::path config_dir() { return base_dir("config", "XDG_CONFIG_HOME", ".config"); }

Result<fs::path> share_dir() {
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code).parent_path();
  for (const fs::path& dir : {env_path("HONE_SHARE"), self / "../share/hone", self / "share/hone"})
    if (!dir.empty() && fs::exists(dir / "include/hone/plan.h", code)) return fs::weakly_canonical(dir, code);
  return fail(make_error(ErrorKind::environment, "share/hone was not found beside the binary in {}", self.string())
                  .with_hint("copy share/hone together with the binary, or set HONE_SHARE"));
}

}  // namespace hone
