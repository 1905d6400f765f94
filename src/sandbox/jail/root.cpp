// The jail's file system: an empty read-only tmpfs with the tool folders, four devices, a private
// /tmp and the mounts asked for.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "sandbox/jail/jail.h"

namespace hone::jail {
namespace {

constexpr std::uint64_t kReadOnly = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t kWritable = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
// Read-only keeps an owner from changing the mode of the machine's device; writing to it still works.
constexpr std::uint64_t kDevice = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

// A copy of a mount tree, attached to nothing yet.
struct Detached {
  int fd;
  std::string inside;
  bool folder;
};

struct Link {
  std::string inside, target;
};

// Files below a writable mount become the jail user's, so that a program that runs as an id without
// any rights can work in a private folder of root's. Links are not followed.
void give_away(int folder, unsigned depth) {
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return;
  DIR* entries = ::fdopendir(own);
  if (entries == nullptr) {
    ::close(own);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status = {};
    if (::fstatat(own, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (status.st_uid == 0 && ::fchownat(own, entry->d_name, kJailId, kJailId, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(status.st_mode) || depth == 0) continue;
    const int child = ::openat(own, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child >= 0) {
      give_away(child, depth - 1);
      ::close(child);
    }
  }
  ::closedir(entries);
}

// As root: what the jail's user could not enter is made its own, see README.md.
void open_to_jail(const OrderMount& mount, const struct stat& status) {
  const bool others_read =
      (status.st_mode & (S_ISDIR(status.st_mode) ? 05u : 04u)) == (S_ISDIR(status.st_mode) ? 05u : 04u);
  if (status.st_uid != 0 || (!mount.writable && others_read)) return;
  if (::chown(mount.host.c_str(), kJailId, kJailId) != 0)
    fail(kStatusFd, Fault::io, "mounts", "cannot give " + mount.host + " to the jail's user", errno);
  if (!mount.writable || !S_ISDIR(status.st_mode)) return;
  const int folder = ::open(mount.host.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail(kStatusFd, Fault::io, "mounts", "cannot open " + mount.host, errno);
  give_away(folder, 64);
  ::close(folder);
}

Detached detach(const std::string& host, const std::string& inside, bool folder, std::uint64_t attributes) {
  const int fd = ::open_tree(AT_FDCWD, host.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (fd < 0)
    fail(kStatusFd, errno == ENOENT || errno == EACCES ? Fault::io : Fault::refused, "bind mounts",
         "cannot mount " + host, errno);
  mount_attr change = {};
  change.attr_set = attributes;
  change.propagation = MS_PRIVATE;
  if (::mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) != 0)
    fail(kStatusFd, Fault::refused, "bind mounts", "cannot restrict the mount of " + host, errno);
  return {fd, inside, folder};
}

void make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0755);   // what fails here fails again, with a reason, at the mount
}

void attach(const Detached& tree) {
  make_parents(tree.inside);
  if (tree.folder) {
    ::mkdir(tree.inside.c_str(), 0755);
  } else {
    const int file = ::open(tree.inside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file >= 0) ::close(file);
  }
  if (::move_mount(tree.fd, "", AT_FDCWD, tree.inside.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    fail(kStatusFd, errno == ENOENT || errno == EROFS ? Fault::io : Fault::refused, "bind mounts",
         "cannot place a mount at " + tree.inside, errno);
  ::close(tree.fd);
}

void mount_tmpfs(const char* where, const std::string& options, unsigned long flags) {
  if (::mount("tmpfs", where, "tmpfs", flags, options.c_str()) != 0)
    fail(kStatusFd, Fault::refused, "mounts", std::string("cannot mount a tmpfs at ") + where, errno);
}

void collect_tools(std::vector<Detached>& trees, std::vector<Link>& links) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives",
                           "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"}) {
    struct stat status = {};
    if (::lstat(path, &status) != 0) continue;
    if (S_ISLNK(status.st_mode)) {
      char target[4096];
      const ssize_t n = ::readlink(path, target, sizeof target);
      if (n > 0) links.push_back({path, std::string(target, static_cast<std::size_t>(n))});
    } else {
      trees.push_back(detach(path, path, S_ISDIR(status.st_mode), kReadOnly));
    }
  }
}

}  // namespace

void build_root(const Order& order, bool as_root) {
  // Everything is opened by its path outside before the new root covers it.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail(kStatusFd, Fault::refused, "mount namespace", "cannot make the mounts private", errno);
  std::vector<Detached> trees;
  std::vector<Link> links;
  if (order.tools) collect_tools(trees, links);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"})
    trees.push_back(detach(device, device, false, kDevice));
  std::vector<Detached> asked;
  for (const OrderMount& mount : order.mounts) {
    struct stat status = {};
    if (::stat(mount.host.c_str(), &status) != 0)
      fail(kStatusFd, Fault::io, "mounts", "cannot mount " + mount.host, errno);
    if (as_root) open_to_jail(mount, status);
    asked.push_back(detach(mount.host, mount.inside, S_ISDIR(status.st_mode), mount.writable ? kWritable : kReadOnly));
  }

  // Any folder does as the place of the new root: it is hidden for this namespace alone.
  constexpr const char* kPlace = "/usr";
  mount_tmpfs(kPlace, "mode=755,size=1m,nr_inodes=4096", MS_NOSUID | MS_NODEV);
  if (::chdir(kPlace) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0)
    fail(kStatusFd, Fault::refused, "pivot_root", "cannot change the root", errno);
  if (::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0)
    fail(kStatusFd, Fault::refused, "pivot_root", "cannot leave the old root", errno);

  for (const Link& link : links) {
    make_parents(link.inside);
    if (::symlink(link.target.c_str(), link.inside.c_str()) != 0)
      fail(kStatusFd, Fault::refused, "mounts", "cannot make the link " + link.inside, errno);
  }
  for (const Detached& tree : trees) attach(tree);
  ::mkdir("/tmp", 0755);
  if (order.tmp_bytes > 0) {
    mount_tmpfs("/tmp", "mode=1777,size=" + std::to_string(order.tmp_bytes) + ",nr_inodes=16384",
                MS_NOSUID | MS_NODEV | MS_NOEXEC);
  }
  for (const Detached& tree : asked) attach(tree);
  mount_attr read_only = {};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof read_only) != 0)
    fail(kStatusFd, Fault::refused, "mounts", "cannot make the root read-only", errno);
}

void drop_privileges(bool as_root) {
  for (int capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  if (::prctl(PR_SET_SECUREBITS,
              SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                  SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
              0, 0, 0) != 0)
    fail(kStatusFd, Fault::refused, "capabilities", "cannot set the secure bits", errno);
  if (as_root && (::setgroups(0, nullptr) != 0 || ::setresgid(kJailId, kJailId, kJailId) != 0 ||
                  ::setresuid(kJailId, kJailId, kJailId) != 0))
    fail(kStatusFd, Fault::refused, "user id map", "cannot become an unprivileged user", errno);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    fail(kStatusFd, Fault::refused, "capabilities", "cannot drop them", errno);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    fail(kStatusFd, Fault::refused, "no_new_privs", "cannot set it", errno);
}

}  // namespace hone::jail
