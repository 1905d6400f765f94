#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

// A few devices instead of the machine's: as root its disks could be written below every mount.
std::string own_devices() {
  struct Device {
    const char* path;
    int fd;
  };
  Device devices[] = {{"/dev/null", -1}, {"/dev/zero", -1}, {"/dev/full", -1}, {"/dev/random", -1}, {"/dev/urandom", -1}, {"/dev/tty", -1}};
  for (Device& each : devices) {
    each.fd = static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, each.path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (each.fd < 0 && errno != ENOENT) return why(std::string("take ") + each.path);
    // Read-only keeps an owner from changing the mode of the machine's device; writing to it still works.
    if (each.fd >= 0) {
      mount_attr attributes = {};
      attributes.attr_set = MOUNT_ATTR_RDONLY;
      if (::syscall(SYS_mount_setattr, each.fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) return why(std::string("restrict ") + each.path);
    }
  }
  if (::mount("none", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=0755") != 0) return why("own /dev");
  for (const Device& each : devices) {
    if (each.fd < 0) continue;
    const int file = ::open(each.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) ::close(file);
    if (::syscall(SYS_move_mount, each.fd, "", AT_FDCWD, each.path, MOVE_MOUNT_F_EMPTY_PATH) != 0) return why(std::string("place ") + each.path);
    ::close(each.fd);
  }
  ::mkdir("/dev/shm", 01777);
  if (::mount("none", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0) return why("own /dev/shm");
  ::mkdir("/dev/pts", 0755);
  if (::mount("none", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") != 0) return why("own /dev/pts");
  constexpr const char* links[][2] = {{"pts/ptmx", "/dev/ptmx"}, {"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"}};
  for (const auto& each : links)
    if (::symlink(each[0], each[1]) != 0) return why(std::string("link ") + each[1]);
  return "";
}

// Root may write the kernel's own settings without any capability, one of them a program to be run.
std::string settings_read_only() {
  for (const char* path : {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"}) {
    struct stat about = {};
    if (::stat(path, &about) != 0) continue;
    if (::mount(path, path, nullptr, MS_BIND, nullptr) != 0 || !set_read_only(path, true, false)) return why(std::string("read-only ") + path);
  }
  return "";
}

// Sockets of services that do as root what they are asked, whoever has the view that the caller has.
constexpr const char* kServices[] = {"/run/docker.sock", "/run/containerd", "/run/podman", "/run/crio", "/run/dbus", "/run/systemd/private", "/run/snapd.socket", "/run/libvirt"};

}  // namespace

std::string give_up_privileges() {
  // What is left lets root work with files and processes of its own; CAP_SETFCAP lets it make a user namespace for another sandbox.
  constexpr unsigned kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SETFCAP};
  for (unsigned cap = 0; cap < 64; ++cap) {
    bool keep = false;
    for (const unsigned each : kept) keep = keep || each == cap;
    if (!keep && ::prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 && ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) return why("give up a capability");
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Whoever isn't root loses all of them at the exec, root those that are no longer in the bounding set.
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return why("read the capabilities");
  for (auto& each : data) each.inheritable = 0;
  if (::syscall(SYS_capset, &header, data) != 0) return why("give up inherited capabilities");
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? "" : why("no new privileges");
}

std::string set_up_view(const View& view) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return why("private mounts");
  // A container may refuse this; the program then sees the host's /proc, which costs nothing that matters here.
  // Confined, that would show it processes whose view is another.
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0 && view.confined) return why("own /proc");
  if (!view.confined) return "";
  for (const std::string& path : view.writable)
    if (::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return why("bind " + path);
  if (!set_read_only("/", true, true)) return why("read-only view");
  for (const std::string& path : view.writable)
    if (!set_read_only(path.c_str(), false, true)) return why("write " + path);
  // What a program needs of /proc is its own; root's exceptions follow.
  if (!set_read_only("/proc", false, false)) return why("write /proc");
  if (const std::string failed = own_devices(); !failed.empty()) return failed;
  if (::getuid() == 0)
    if (const std::string failed = settings_read_only(); !failed.empty()) return failed;
  for (const char* path : kServices)
    if (const std::string failed = hide(path); !failed.empty()) return failed;
  for (const std::string& path : view.hidden)
    if (const std::string failed = hide(path); !failed.empty()) return failed;
  // The working directory still lies below what has been mounted over.
  char here[4096];
  if (::getcwd(here, sizeof here) == nullptr || ::chdir(here) != 0) return why("working directory");
  return "";
}

}  // namespace hone::keeper
