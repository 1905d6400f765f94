// The machine under the CPU device: cores, caches, instruction sets, and their upper bounds.
#ifndef HONE_DEVICE_CPU_TOPOLOGY_H
#define HONE_DEVICE_CPU_TOPOLOGY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "device/device.h"

namespace hone::cpu {

struct Topology {
  std::vector<int> worker_cores;       // worker i runs on worker_cores[i]
  int clock_core = 0;                  // rings, spins and reads the clock
  bool clock_core_shared = false;      // it is a worker's too: waiting must not spin
  std::size_t l2_bytes = 0, cache_bytes = 0;
};

// Kind usage: more workers than cores.
Result<Topology> find_topology(int workers);

// Keeps this thread on one core until the end of its life, then restores what was allowed.
class Pin {
 public:
  Pin();
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  void to(int core);

 private:
  std::vector<unsigned char> before_;
};
// Lets a thread of any process run on these cores only.
bool restrict_to(int tid, std::span<const int> cores);

// Empties caches: streams random data through them on the cores that will be timed, and evicts the lines
// of the memory that a call will use. A last-level cache beyond 16 MiB is shared with neighbours and takes
// longer to stream through than most kernels run; there eviction does its part.
class CacheFlusher {
 public:
  explicit CacheFlusher(const Topology& topology);
  // Leaves this thread on the clock core; `used`: every buffer of the call.
  void flush(Pin& pin, std::span<const std::span<const std::byte>> used) const;
  // Evicts lines from the caches of all cores, whatever process has them mapped: caches are coherent. Does nothing
  // on an architecture without such an instruction.
  static void evict(std::span<const std::byte> bytes);
  // Bytes streamed on the first worker's core before each timed call.
  std::size_t streamed_bytes() const;
  // Bytes a second of one core's streaming read: best of a few passes.
  double read_rate() const;

 private:
  std::uint64_t stream(std::size_t bytes) const;
  const Topology& topology_;
  std::vector<std::uint64_t> data_;
  mutable std::uint64_t sink_ = 0;
};

DeviceInfo describe_machine(const Topology& topology, const CacheFlusher& flusher);

}  // namespace hone::cpu

#endif
