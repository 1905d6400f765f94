#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "driver/keeper/keeper.h"

namespace hone::keeper {
namespace {

std::string why(const std::string& what) { return what + ": " + std::strerror(errno); }

bool set_read_only(const char* path, bool read_only, bool recursive) {
  mount_attr attributes = {};
  (read_only ? attributes.attr_set : attributes.attr_clr) = MOUNT_ATTR_RDONLY;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, path, recursive ? AT_RECURSIVE : 0, &attributes, sizeof attributes) == 0;
}

// A folder becomes an empty one that can't be written, a file an empty device.
std::string hide(const std::string& path) {
  struct stat about = {};
  if (::stat(path.c_str(), &about) != 0) return errno == ENOENT ? "" : why("hide " + path);
  if (!S_ISDIR(about.st_mode)) return ::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) == 0 ? "" : why("hide " + path);
  return ::mount("none", path.c_str(), "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=0555") == 0 ? "" : why("hide " + path);
}

}  // namespace

std::string set_up_view(const View& view) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return why("private mounts");
  // A container may refuse this; the program then sees the host's /proc, which costs it nothing that matters here.
  (void)::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  if (!view.confined) return "";
  for (const std::string& path : view.writable)
    if (::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return why("bind " + path);
  if (!set_read_only("/", true, true)) return why("read-only view");
  for (const std::string& path : view.writable)
    if (!set_read_only(path.c_str(), false, true)) return why("write " + path);
  for (const char* device : {"/dev", "/proc"}) (void)set_read_only(device, false, true);
  for (const std::string& path : view.hidden)
    if (const std::string failed = hide(path); !failed.empty()) return failed;
  // The working directory still lies below what has been mounted over.
  char here[4096];
  if (::getcwd(here, sizeof here) == nullptr || ::chdir(here) != 0) return why("working directory");
  return "";
}

}  // namespace hone::keeper
