// The memory that a runner and the trusted side share to control it.
//
// The candidate's code runs in the runner's address space: whatever the trusted side reads here
// may be forged. It decides nothing; it only words the message of a death that the system reports.
#ifndef HONE_DEVICE_CPU_CONTROL_H
#define HONE_DEVICE_CPU_CONTROL_H

#include <cstddef>
#include <cstdint>

#include "device/cpu/doorbell.h"

namespace hone::cpu {

inline constexpr std::uint32_t kMaxWorkers = 256;
inline constexpr int kControlFd = 3, kInputFd = 4, kArenaFd = 5;   // as the runner is started

enum RunnerState : std::uint32_t { kStarting, kReady, kLoaded, kRefused };
enum ArenaKind : std::uint32_t { kNowhere, kInputArena, kOwnArena };
inline constexpr std::uint32_t kUnknown = 0xffffffffu;
inline constexpr std::uint32_t kMaxFrames = 16;

// What a signal handler saw. `kind`, then the rest, are valid once `set` is 1.
struct FaultRecord {
  Word claimed{0}, set{0};
  std::int32_t signal = 0, code = 0;
  std::uint64_t address = 0;            // fault address
  std::uint32_t arena = kNowhere;       // of the fault address
  std::uint64_t offset = 0;             // within that arena
  std::uint32_t write = 0;              // the access was a store
  std::uint32_t object = kUnknown;      // shared object of the instruction, or of its callers
  std::uint32_t frames = 0;
  std::uint64_t pcs[kMaxFrames] = {};   // offsets in that object, innermost first
  std::uint32_t worker = kUnknown;
  std::int32_t system_call = -1;        // SIGSYS
  std::uint32_t exhausted = 0;          // no address space was left
};

// Where a worker is, for messages: step and block of the call in progress.
struct alignas(64) Position {
  std::atomic<std::uint32_t> step{kUnknown};
  std::atomic<std::uint64_t> block{0};
};

struct Control {
  Doorbell bell;
  alignas(128) Word command{0};         // trusted: 1 load
  alignas(128) Word state{kStarting};   // runner
  // The program to load, as JSON in the program's own arena; and what to map.
  std::uint64_t blob_offset = 0, blob_bytes = 0, arena_bytes = 0, input_bytes = 0;
  // Runner, before it has a program: where its workers sleep between calls, the instruction and each one's stack.
  std::uint64_t idle_pc = 0, idle_sp[kMaxWorkers] = {};
  char message[2048] = {};              // runner: why it refused
  char description[512] = {};           // runner: what a native baseline says of itself
  std::atomic<std::uint64_t> failed_allocation{0};   // bytes of the largest request that failed
  FaultRecord fault;
  Position positions[kMaxWorkers];
};

}  // namespace hone::cpu

#endif
