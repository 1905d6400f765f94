#include "device/cpu/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace hone::cpu {
namespace {

long futex(const Word& word, int operation, std::uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
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
