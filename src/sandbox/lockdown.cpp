#include "sandbox/lockdown.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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
    SYS_futex, SYS_sched_yield, SYS_clock_gettime, SYS_read, SYS_write, SYS_munmap, SYS_mmap, SYS_madvise,
    SYS_brk, SYS_mprotect, SYS_mremap, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_ppoll,
#ifdef SYS_poll
    SYS_poll, SYS_time,
#endif
    SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_close,
    SYS_getpid, SYS_gettid, SYS_gettimeofday, SYS_clock_getres, SYS_getrandom, SYS_getcpu, SYS_getrusage,
    SYS_sched_getaffinity, SYS_membarrier, SYS_sigaltstack, SYS_set_robust_list, SYS_rseq, SYS_exit,
    SYS_exit_group,
};
constexpr std::size_t kCount = sizeof kAllowed / sizeof kAllowed[0];

constexpr std::uint32_t field(std::size_t offset) { return static_cast<std::uint32_t>(offset); }

}  // namespace

extern "C" int hone_lockdown(void) {
  constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kEqual = BPF_JMP | BPF_JEQ | BPF_K,
                          kReturn = BPF_RET | BPF_K;
  constexpr std::uint32_t kArgument0 = field(offsetof(seccomp_data, args));
  // Numbers of another table mean other calls: they kill. Those of x32 are in no list and trap.
  sock_filter program[kCount + 16];
  std::size_t n = 0;
  const auto put = [&](std::uint16_t code, std::uint8_t yes, std::uint8_t no, std::uint32_t k) {
    program[n++] = {code, yes, no, k};
  };
  put(kLoad, 0, 0, field(offsetof(seccomp_data, arch)));
  put(kEqual, 1, 0, kArchitecture);
  put(kReturn, 0, 0, SECCOMP_RET_KILL_PROCESS);
  put(kLoad, 0, 0, field(offsetof(seccomp_data, nr)));
  for (std::size_t i = 0; i < kCount; ++i) put(kEqual, static_cast<std::uint8_t>(kCount - i + 4), 0, kAllowed[i]);
  // tgkill(own pid, ...): what abort does.
  put(kEqual, 0, 3, SYS_tgkill);
  put(kLoad, 0, 0, kArgument0);
  put(kEqual, 0, 1, static_cast<std::uint32_t>(::getpid()));
  put(kReturn, 0, 0, SECCOMP_RET_ALLOW);
  put(kReturn, 0, 0, SECCOMP_RET_TRAP);
  put(kReturn, 0, 0, SECCOMP_RET_ALLOW);
  const sock_fprog filter = {static_cast<unsigned short>(n), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const long code = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                              SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
  if (code > 0) return ESRCH;
  return code == 0 ? 0 : errno;
}
