// The runner's scheduling: worker threads that take blocks of one launch after the other.
//
// Blocks are handed out one at a time in increasing linear index, x fastest; a launch begins when
// every block of the one before it has ended. Worker 0 answers the doorbell and wakes the others.
#ifndef HONE_DEVICE_CPU_CREW_H
#define HONE_DEVICE_CPU_CREW_H

#include <cstdint>
#include <memory>

#include "device/cpu/doorbell.h"

namespace hone::cpu {

// What a crew does in one call: steps in sequence, each a number of independent blocks.
class Work {
 public:
  virtual ~Work() = default;
  virtual std::uint32_t steps() const = 0;
  virtual std::uint64_t blocks(std::uint32_t step) const = 0;
  // Before the timed span, on each worker: touch what run will need.
  virtual void prepare(std::uint32_t slot, std::uint32_t worker) = 0;
  virtual void run(std::uint32_t step, std::uint32_t slot, std::uint64_t block, std::uint32_t worker) = 0;
};

class Crew {
 public:
  Crew(Doorbell& bell, std::uint32_t workers, Patience patience)
      : bell_(bell), workers_(workers), patience_(patience) {}

  // Worker 0: serves calls until kStop. `alone`: the work has threads of its own, the others sleep.
  void lead(Work& work, bool alone);
  // Workers 1, 2, ...: each on a thread of its own, until kStop.
  void follow(std::uint32_t worker);

 private:
  struct alignas(128) Counter {
    std::atomic<std::uint64_t> next{0};
  };
  void perform(std::uint32_t worker, std::uint32_t call);

  Doorbell& bell_;
  const std::uint32_t workers_;
  const Patience patience_;
  Work* work_ = nullptr;
  std::uint32_t participants_ = 1, slot_ = 0;
  std::unique_ptr<Counter[]> counters_;        // by step
  alignas(128) Word wake_{0};                  // call number, from worker 0 to the others
  alignas(128) Word ready_{0};
  alignas(128) Word arrived_{0};
};

}  // namespace hone::cpu

#endif
