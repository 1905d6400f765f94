#include "device/cpu/runner_faults.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

namespace hone::cpu {
namespace {

struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool holds(std::uintptr_t at) const { return at >= begin && at < end; }
};
constexpr std::uint32_t kMaxObjects = 64;
constexpr std::size_t kAltStack = 64 * 1024;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

Control* shared = nullptr;
Range arenas[3], objects[kMaxObjects];
thread_local std::uint32_t this_worker = kUnknown;

void note_frame(std::uintptr_t pc, FaultRecord& fault) {
  for (std::uint32_t i = 0; i < kMaxObjects; ++i) {
    if (!objects[i].holds(pc) || (fault.frames != 0 && fault.object != i)) continue;
    fault.object = i;
    fault.pcs[fault.frames++] = pc - objects[i].begin;
  }
}

_Unwind_Reason_Code visit(_Unwind_Context* context, void* fault) {
  const std::uintptr_t pc = _Unwind_GetIP(context);
  // A return address is one past the call; its line is that of the byte before it.
  auto& record = *static_cast<FaultRecord*>(fault);
  if (pc != 0) note_frame(pc - 1, record);
  return record.frames == kMaxFrames ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

void die_of(int signal) {
  // The handler was reset when it was entered (nobody may change handlers any more). The signal is
  // blocked while this runs; it is delivered on return.
  if (::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal) != 0) ::_exit(128 + signal);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  FaultRecord& fault = shared->fault;
  if (fault.claimed.exchange(1) != 0) return die_of(signal);   // the first one's record stays
  fault.signal = signal;
  fault.code = info->si_code;
  fault.worker = this_worker;
  std::uintptr_t pc = 0;
  if (signal == SIGSYS) fault.system_call = info->si_syscall;
  if (signal == SIGSEGV || signal == SIGBUS) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    fault.address = address;
    for (const ArenaKind kind : {kInputArena, kOwnArena})
      if (arenas[kind].holds(address)) {
        fault.arena = kind;
        fault.offset = address - arenas[kind].begin;
      }
  }
#if defined(__x86_64__)
  const auto* machine = static_cast<const ucontext_t*>(context);
  pc = static_cast<std::uintptr_t>(machine->uc_mcontext.gregs[REG_RIP]);
  fault.write = signal == SIGSEGV && (machine->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? 1 : 0;
#else
  pc = static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#endif
  void* probe = ::mmap(nullptr, std::size_t{4} << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  fault.exhausted = probe == MAP_FAILED ? 1 : 0;
  note_frame(pc, fault);
  fault.set.store(1, std::memory_order_release);
  // The stack may be in ruins; what matters is recorded already.
  if (fault.frames == 0) _Unwind_Backtrace(visit, &fault);
  die_of(signal);
}

}  // namespace

void install_fault_handlers(Control& control) {
  shared = &control;
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  ::sigfillset(&action.sa_mask);
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
  FaultRecord ignored;
  _Unwind_Backtrace(visit, &ignored);   // what the unwinder sets up lazily is set up now
}

void prepare_thread(std::uint32_t worker) {
  this_worker = worker;
  void* stack = ::mmap(nullptr, kAltStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return;
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = kAltStack;
  ::sigaltstack(&alternate, nullptr);
}

void note_arena(ArenaKind kind, const void* begin, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  arenas[kind] = {at, at + bytes};
}

void note_object(std::uint32_t index, std::uintptr_t base, std::uintptr_t end) {
  if (index < kMaxObjects) objects[index] = {base, end};
}

void note_failed_allocation(std::size_t bytes) {
  if (shared == nullptr) return;
  std::uint64_t seen = shared->failed_allocation.load(std::memory_order_relaxed);
  while (seen < bytes && !shared->failed_allocation.compare_exchange_weak(seen, bytes)) {}
}

}  // namespace hone::cpu
