// The two seccomp policies, as tables of names. Both are lists of what is allowed: a system call
// that a later kernel adds is refused until somebody puts it here.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <cerrno>
#include <initializer_list>

#include "sandbox/jail/jail.h"

namespace hone::jail {
namespace {

// Memory, time, descriptors that are there, reading files, threads' waiting.
constexpr const char* kCommon[] = {
    "access", "arch_prctl", "brk", "clock_getres", "clock_gettime", "clock_nanosleep", "close", "dup", "dup2",
    "dup3", "exit", "exit_group", "faccessat", "faccessat2", "fadvise64", "fstat", "fstatfs", "futex",
    "futex_waitv", "get_robust_list", "getcpu", "getcwd", "getdents64", "getegid", "geteuid", "getgid",
    "getgroups", "getpgrp", "getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresuid",
    "getrlimit", "getrusage", "gettid", "gettimeofday", "getuid", "lseek", "lstat", "madvise", "membarrier",
    "mincore", "mmap", "mprotect", "mremap", "munmap", "nanosleep", "newfstatat", "open", "openat", "poll",
    "ppoll", "pread64", "preadv", "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv",
    "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
    "sched_getparam", "sched_getscheduler", "sched_setaffinity", "sched_yield", "set_robust_list",
    "set_tid_address", "sigaltstack", "stat", "statfs", "statx", "sysinfo", "time", "times", "uname", "write",
    "writev",
};

// What compilers, assemblers and linkers do beyond that.
constexpr const char* kTools[] = {
    "alarm", "capget", "chdir", "chmod", "chown", "close_range", "copy_file_range", "creat", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd", "eventfd2", "execve", "execveat",
    "fallocate", "fchdir", "fchmod", "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync", "flock", "fork",
    "fsync", "ftruncate", "futimesat", "getdents", "getitimer", "getpgid", "getsid", "ioctl", "kill", "lchown",
    "link", "linkat", "mkdir", "mkdirat", "msync", "pause", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2",
    "prctl", "pselect6", "readahead", "rename", "renameat", "renameat2", "rmdir", "rt_sigqueueinfo", "select",
    "sendfile", "setitimer", "setpgid", "setpriority", "setrlimit", "setsid", "splice", "symlink", "symlinkat",
    "sync_file_range", "tee", "tgkill", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime", "tkill", "truncate", "umask",
    "unlink", "unlinkat", "utime", "utimensat", "utimes", "vfork", "vmsplice", "wait4", "waitid",
};

// Refused by name with EPERM; everything that no table names is answered with ENOSYS, which
// programs take for an older kernel.
constexpr const char* kToolsRefused[] = {
    "accept", "accept4", "acct", "add_key", "bind", "bpf", "chroot", "connect", "delete_module", "finit_module",
    "fsmount", "fsopen", "fspick", "getpeername", "getsockname", "getsockopt", "init_module", "io_uring_enter",
    "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
    "listen", "mknod", "mknodat", "mount", "mount_setattr", "move_mount", "name_to_handle_at",
    "open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_madvise",
    "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "reboot", "recvfrom", "recvmmsg", "recvmsg",
    "request_key", "sched_setattr", "sched_setparam", "sched_setscheduler", "sendmmsg", "sendmsg", "sendto",
    "setdomainname", "setfsgid", "setfsuid", "setgid", "setgroups", "sethostname", "setns", "setregid",
    "setresgid", "setresuid", "setreuid", "setsockopt", "settimeofday", "setuid", "shutdown", "socket",
    "socketpair", "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd", "vhangup",
};

// Calls that libraries try and do without: an answer instead of a trap.
struct Answer {
  const char* name;
  std::uint16_t error;
};
constexpr Answer kComputeAnswers[] = {
    {"clone3", ENOSYS},        {"memfd_create", ENOSYS}, {"shmget", ENOSYS},     {"get_mempolicy", ENOSYS},
    {"set_mempolicy", ENOSYS}, {"mbind", ENOSYS},        {"mlock", EPERM},       {"mlock2", EPERM},
    {"mlockall", EPERM},       {"munlock", EPERM},       {"setpriority", EPERM}, {"sched_setscheduler", EPERM},
    {"sched_setparam", EPERM}, {"openat2", ENOSYS}};

constexpr std::uint64_t kNewNamespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                            CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

class Filter {
 public:
  explicit Filter(std::uint32_t otherwise) : context_(seccomp_init(otherwise)) {
    if (context_ == nullptr) {
      error_ = ENOMEM;
      return;
    }
    note(seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    // No mitigation against store bypass within one process: it would slow every kernel under test.
    note(seccomp_attr_set(context_, SCMP_FLTATR_CTL_SSB, 1));
    note(seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  ~Filter() { seccomp_release(context_); }

  void add(std::uint32_t action, const char* name, std::initializer_list<scmp_arg_cmp> arguments = {}) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0 || error_ != 0) return;   // this architecture has no such call
    note(seccomp_rule_add_array(context_, action, number, static_cast<unsigned>(arguments.size()), arguments.begin()));
  }
  void allow(const char* name, std::initializer_list<scmp_arg_cmp> arguments = {}) {
    add(SCMP_ACT_ALLOW, name, arguments);
  }

  int load() {
    if (error_ == 0) note(seccomp_load(context_));
    return error_;
  }

 private:
  void note(int code) {
    if (code < 0 && error_ == 0) error_ = -code;
  }
  scmp_filter_ctx context_;
  int error_ = 0;
};

scmp_arg_cmp equal(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }
scmp_arg_cmp differs(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_NE, value, 0}; }
scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

std::uint64_t all_new_namespaces() {
  std::uint64_t all = 0;
  for (std::uint64_t flag : kNewNamespaces) all |= flag;
  return all;
}

int load_tools() {
  Filter filter(SCMP_ACT_ERRNO(ENOSYS));
  for (const char* name : kCommon) filter.allow(name);
  for (const char* name : kTools) {
    // A terminal's input must not be forged, should a descriptor of one ever come in.
    if (std::string_view(name) == "ioctl") {
      filter.allow(name, {differs(1, TIOCSTI)});
      filter.add(SCMP_ACT_ERRNO(EPERM), name, {equal(1, TIOCSTI)});
    } else {
      filter.allow(name);
    }
  }
  for (const char* name : kToolsRefused) filter.add(SCMP_ACT_ERRNO(EPERM), name);
  filter.allow("clone", {masked(0, all_new_namespaces(), 0)});
  for (std::uint64_t flag : kNewNamespaces) filter.add(SCMP_ACT_ERRNO(EPERM), "clone", {masked(0, flag, flag)});
  filter.allow("prlimit64", {equal(0, 0)});
  filter.add(SCMP_ACT_ERRNO(EPERM), "prlimit64", {differs(0, 0)});
  filter.allow("personality", {equal(0, 0xffffffff)});
  filter.add(SCMP_ACT_ERRNO(EPERM), "personality", {differs(0, 0xffffffff)});
  return filter.load();
}

int load_compute(pid_t self, const std::uint64_t (&keys)[3]) {
  Filter filter(SCMP_ACT_TRAP);
  for (const char* name : kCommon) filter.allow(name);
  for (const Answer& answer : kComputeAnswers) filter.add(SCMP_ACT_ERRNO(answer.error), answer.name);
  filter.allow("execve", {equal(3, keys[0]), equal(4, keys[1]), equal(5, keys[2])});
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
  filter.allow("clone", {masked(0, kThread | all_new_namespaces(), kThread)});
  const auto me = static_cast<std::uint64_t>(self);
  filter.allow("tgkill", {equal(0, me)});
  filter.allow("kill", {equal(0, me)});
  filter.allow("prlimit64", {equal(0, 0)});
  // Not F_ADD_SEALS, F_SETOWN, leases or locks: the descriptors may be shared with Hone.
  for (int command : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL})
    filter.allow("fcntl", {equal(1, static_cast<std::uint64_t>(command))});
  filter.allow("ioctl", {equal(1, TCGETS)});
  filter.add(SCMP_ACT_ERRNO(ENOTTY), "ioctl", {differs(1, TCGETS)});
  // A filter of its own on top (sandbox/lockdown.h), names of threads, huge pages.
  constexpr int kNameMemory = 0x53564d41;   // PR_SET_VMA
  for (int option : {PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_NAME, PR_GET_NAME,
                     PR_SET_THP_DISABLE, PR_GET_DUMPABLE, kNameMemory})
    filter.allow("prctl", {equal(0, static_cast<std::uint64_t>(option))});
  filter.allow("seccomp");
  return filter.load();
}

}  // namespace

int load_filter(bool compute, pid_t self, const std::uint64_t (&keys)[3]) {
  return compute ? load_compute(self, keys) : load_tools();
}

}  // namespace hone::jail
