#include "sandbox/lockdown.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "hone_lockdown knows x86-64 and AArch64"
#endif

// The busiest first: the kernel walks the list.
constexpr std::uint32_t kAllowed[] = {
    SYS_futex, SYS_sched_yield, SYS_clock_gettime, SYS_read, SYS_write, SYS_brk, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_ppoll,
#ifdef SYS_poll
    SYS_poll, SYS_time,
#endif
    SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_close,
    SYS_getpid, SYS_gettid, SYS_gettimeofday, SYS_clock_getres, SYS_getrandom, SYS_getcpu, SYS_getrusage,
    SYS_sched_getaffinity, SYS_membarrier, SYS_sigaltstack, SYS_set_robust_list, SYS_exit,
    SYS_exit_group,
};
constexpr std::size_t kCount = sizeof kAllowed / sizeof kAllowed[0];
// What opening a shared object takes beside, and this filter's successor.
constexpr std::uint32_t kLoading[] = {
    SYS_openat, SYS_faccessat, SYS_readlinkat, SYS_prctl, SYS_seccomp,
#ifdef SYS_open
    SYS_open, SYS_access, SYS_readlink, SYS_stat,
#endif
};
constexpr std::size_t kLoadingCount = sizeof kLoading / sizeof kLoading[0];
constexpr std::uint32_t kMappings[] = {SYS_munmap, SYS_mprotect, SYS_madvise};   // their first argument is the address

constexpr std::uint32_t field(std::size_t offset) { return static_cast<std::uint32_t>(offset); }

}  // namespace

extern "C" int hone_lockdown(const void* image_end, int loading) {
  constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kEqual = BPF_JMP | BPF_JEQ | BPF_K,
                          kGreater = BPF_JMP | BPF_JGT | BPF_K, kAtLeast = BPF_JMP | BPF_JGE | BPF_K,
                          kAnyBit = BPF_JMP | BPF_JSET | BPF_K, kReturn = BPF_RET | BPF_K;
  // Of an argument: its low half, which little-endian machines put first.
  const auto argument = [](std::size_t i) { return field(offsetof(seccomp_data, args) + 8 * i); };
  const auto limit = reinterpret_cast<std::uintptr_t>(image_end);
  const auto low = static_cast<std::uint32_t>(limit), high = static_cast<std::uint32_t>(limit >> 32);
  // Numbers of another table mean other calls: they kill. Those of x32 are in no list and trap.
  sock_filter program[kCount + kLoadingCount + 64];
  std::size_t n = 0;
  const auto put = [&](std::uint16_t code, std::uint8_t yes, std::uint8_t no, std::uint32_t k) {
    program[n++] = {code, yes, no, k};
  };
  // Allowed from the limit on, trapped below it: seven instructions.
  const auto above_image = [&] {
    put(kLoad, 0, 0, argument(0) + 4);
    put(kGreater, 3, 0, high);
    put(kEqual, 0, 3, high);
    put(kLoad, 0, 0, argument(0));
    put(kAtLeast, 0, 1, low);
    put(kReturn, 0, 0, SECCOMP_RET_ALLOW);
    put(kReturn, 0, 0, SECCOMP_RET_TRAP);
  };
  put(kLoad, 0, 0, field(offsetof(seccomp_data, arch)));
  put(kEqual, 1, 0, kArchitecture);
  put(kReturn, 0, 0, SECCOMP_RET_KILL_PROCESS);
  put(kLoad, 0, 0, field(offsetof(seccomp_data, nr)));
  for (const std::uint32_t number : kMappings) {
    put(kEqual, 0, 7, number);
    above_image();
  }
  put(kEqual, 0, 10, SYS_mremap);
  put(kLoad, 0, 0, argument(3));
  put(kAnyBit, 0, 1, MREMAP_FIXED);
  put(kReturn, 0, 0, SECCOMP_RET_TRAP);
  above_image();
  put(kEqual, 0, 10, SYS_mmap);
  put(kLoad, 0, 0, argument(3));
  put(kAnyBit, 1, 0, MAP_FIXED);
  put(kReturn, 0, 0, SECCOMP_RET_ALLOW);
  above_image();
  // tgkill(own pid, ...): what abort does.
  put(kEqual, 0, 4, SYS_tgkill);
  put(kLoad, 0, 0, argument(0));
  put(kEqual, 0, 1, static_cast<std::uint32_t>(::getpid()));
  put(kReturn, 0, 0, SECCOMP_RET_ALLOW);
  put(kReturn, 0, 0, SECCOMP_RET_TRAP);
  const std::size_t more = loading != 0 ? kLoadingCount : 0;
  for (std::size_t i = 0; i < more; ++i) put(kEqual, static_cast<std::uint8_t>(kCount + more - i), 0, kLoading[i]);
  for (std::size_t i = 0; i < kCount; ++i) put(kEqual, static_cast<std::uint8_t>(kCount - i), 0, kAllowed[i]);
  put(kReturn, 0, 0, SECCOMP_RET_TRAP);
  put(kReturn, 0, 0, SECCOMP_RET_ALLOW);
  const sock_fprog filter = {static_cast<unsigned short>(n), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const long code = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                              SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
  if (code > 0) return ESRCH;
  return code == 0 ? 0 : errno;
}
