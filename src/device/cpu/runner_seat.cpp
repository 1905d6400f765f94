#include "device/cpu/runner_seat.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "device/cpu/runner_program.h"
#include "sandbox/lockdown.h"

// hone_idle(stack, word, seen): stack pointer = stack; futex(word, FUTEX_WAIT, seen, no timeout); hone_awake(stack pointer).
extern "C" {
void hone_idle(void* stack, const hone::cpu::Word* word, std::uint32_t seen);
extern const char hone_idle_resume[];
void hone_awake(void* stack);
extern const char _end[];   // of the image, by the linker
}
#if defined(__x86_64__)
asm(R"(
.text
.globl hone_idle, hone_idle_resume
.type hone_idle, @function
hone_idle:
  mov %rdi, %rsp
  mov %rsi, %rdi
  xor %esi, %esi
  xor %r10d, %r10d
  mov $202, %eax
  syscall
hone_idle_resume:
  mov %rsp, %rdi
  call hone_awake
  ud2
.size hone_idle, .-hone_idle
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl hone_idle, hone_idle_resume
.type hone_idle, %function
hone_idle:
  mov sp, x0
  mov x0, x1
  mov x1, #0
  mov x3, #0
  mov x8, #98
  svc #0
hone_idle_resume:
  mov x0, sp
  bl hone_awake
  brk #0
.size hone_idle, .-hone_idle
)");
#else
#error "the runner sleeps on x86-64 and AArch64"
#endif

namespace hone::cpu {
namespace {

// The guard is wider than any local array that a kernel may well have: a frame does not step over it.
constexpr std::size_t kStack = std::size_t{8} << 20, kGuard = std::size_t{16} << 20, kPageBytes = 4096;

struct Seats {
  Seats(Doorbell& bell, std::uint32_t count, Patience patience) : crew(bell, count, patience), workers(count) {}
  Crew crew;
  std::uint32_t workers;
  void* stacks[kMaxWorkers] = {};
};
constexpr std::size_t kSeatBytes = (sizeof(Seats) + kPageBytes - 1) / kPageBytes * kPageBytes;
alignas(kPageBytes) std::byte seat_memory[kSeatBytes];
// What a worker has answered last: a candidate that changes it only confuses its own calls.
std::uint32_t answered[kMaxWorkers];

Seats& seats() { return *std::launder(reinterpret_cast<Seats*>(seat_memory)); }

std::uint32_t worker_of(const void* stack) {
  const Seats& all = seats();
  for (std::uint32_t worker = 0; worker < all.workers; ++worker)
    if (all.stacks[worker] == stack) return worker;
  ::_exit(3);
}

}  // namespace

Crew* make_seats(Control& control, std::uint32_t workers, Patience patience) {
  Seats& all = *new (seat_memory) Seats(control.bell, workers, patience);
  control.idle_pc = reinterpret_cast<std::uintptr_t>(hone_idle_resume);
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    void* guard = ::mmap(nullptr, kGuard + kStack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (guard == MAP_FAILED) return nullptr;
    std::byte* stack = static_cast<std::byte*>(guard) + kGuard;
    if (::mprotect(stack, kStack, PROT_READ | PROT_WRITE) != 0) return nullptr;
    all.stacks[worker] = stack + kStack;
    control.idle_sp[worker] = reinterpret_cast<std::uintptr_t>(all.stacks[worker]);
  }
  return &all.crew;
}

bool seal_seats() { return ::mprotect(seat_memory, kSeatBytes, PROT_READ) == 0; }

void take_seat(std::uint32_t worker) {
  hone_idle(seats().stacks[worker], &seats().crew.alarm(worker), answered[worker]);
}

void lock_while_loading() {
  if (const int code = hone_lockdown(_end, 1); code != 0) throw RunnerFault(std::strerror(code));
}

int lock() { return hone_lockdown(_end, 0); }

}  // namespace hone::cpu

void hone_awake(void* stack) {
  using namespace hone::cpu;
  const std::uint32_t worker = worker_of(stack);
  Crew& crew = seats().crew;
  const std::uint32_t call = crew.alarm(worker).load(std::memory_order_acquire);
  if (call != answered[worker]) {
    answered[worker] = call;
    crew.answer(worker, call);
    if (call == kStop) ::_exit(0);
  }
  take_seat(worker);
}
