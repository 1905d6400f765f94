#include "device/cpu/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace hone::cpu {
namespace {

// No function of a library: in the runner, a candidate can replace those.
long futex(const Word& word, int operation, std::uint32_t value, const timespec* timeout) {
#if defined(__x86_64__)
  long result = SYS_futex;
  register const timespec* r10 asm("r10") = timeout;
  asm volatile("syscall" : "+a"(result) : "D"(&word), "S"(operation), "d"(value), "r"(r10) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register const Word* x0 asm("x0") = &word;
  register long x1 asm("x1") = operation, x2 asm("x2") = value, x8 asm("x8") = SYS_futex;
  register const timespec* x3 asm("x3") = timeout;
  asm volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x8) : "memory");
  return reinterpret_cast<long>(x0);
#else
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
#endif
}

template <class Reached>
void wait_until(const Word& word, Patience patience, Reached reached) {
  for (;;) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (reached(now)) return;
    if (patience == Patience::sleep) futex(word, FUTEX_WAIT, now, nullptr);
    else pause_core();
  }
}

}  // namespace

void set(Word& word, std::uint32_t value, Patience patience) {
  word.store(value, std::memory_order_release);
  if (patience == Patience::sleep) futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

void add(Word& word, std::uint32_t amount, Patience patience) {
  word.fetch_add(amount, std::memory_order_acq_rel);
  if (patience == Patience::sleep) futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

void wait_equal(const Word& word, std::uint32_t value, Patience patience) {
  wait_until(word, patience, [value](std::uint32_t now) { return now == value; });
}

void wait_at_least(const Word& word, std::uint32_t value, Patience patience) {
  wait_until(word, patience, [value](std::uint32_t now) { return now >= value; });
}

std::uint32_t wait_change(const Word& word, std::uint32_t seen) {
  wait_until(word, Patience::sleep, [seen](std::uint32_t now) { return now != seen; });
  return word.load(std::memory_order_acquire);
}

void nap(const Word& word, std::uint32_t seen, std::uint64_t nanoseconds) {
  const timespec limit = {static_cast<time_t>(nanoseconds / 1000000000u), static_cast<long>(nanoseconds % 1000000000u)};
  futex(word, FUTEX_WAIT, seen, &limit);
}

}  // namespace hone::cpu
