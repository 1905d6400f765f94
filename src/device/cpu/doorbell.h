// The doorbell in shared memory by which a call is rung and timed from outside the runner.
//
// A call has two steps. `call` is a futex: the runner's threads wake, get ready and spin, and
// `armed` says so. Then the trusted side reads its clock, stores `go`, and spins for `done`: no
// wake-up and no system call lies between its two clock readings. Each word holds the call's
// number and has cache lines of its own.
#ifndef HONE_DEVICE_CPU_DOORBELL_H
#define HONE_DEVICE_CPU_DOORBELL_H

#include <atomic>
#include <cstdint>

namespace hone::cpu {

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free, "the doorbell crosses processes");

struct Doorbell {
  alignas(128) Word call{0};
  Word slot{0};               // which of the rotated buffers this call uses
  alignas(128) Word armed{0};
  alignas(128) Word go{0};
  alignas(128) Word done{0};
};

inline constexpr std::uint32_t kStop = 0xffffffffu;   // as a call's number: leave the loop

// spin where every thread has a core of its own; sleep (futex) where the one that waits shares a
// core with the one that works.
enum class Patience : std::uint32_t { spin, sleep };

void set(Word& word, std::uint32_t value, Patience patience);          // release
void add(Word& word, std::uint32_t amount, Patience patience);         // acquire and release
void wait_equal(const Word& word, std::uint32_t value, Patience patience);
void wait_at_least(const Word& word, std::uint32_t value, Patience patience);
std::uint32_t wait_change(const Word& word, std::uint32_t seen);       // always sleeps; the new value
// Sleeps until the word differs from `seen` or the time is over (or earlier).
void nap(const Word& word, std::uint32_t seen, std::uint64_t nanoseconds);

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace hone::cpu

#endif
