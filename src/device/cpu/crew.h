// The runner's scheduling: worker threads that take blocks of one launch after the other.
//
// Blocks are handed out one at a time in increasing linear index, x fastest; a launch begins when
// every block of the one before it has ended. Worker 0 answers the doorbell and wakes the others.
//
// Until `go` nothing is done but to store and to wait, through pointers in the Crew itself, which never changes
// after its construction: its page can be sealed (runner_seat.h), and what a program wrote anywhere else cannot
// make it do anything before the clock runs.
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
  virtual void run(std::uint32_t step, std::uint32_t slot, std::uint64_t block, std::uint32_t worker) = 0;
};

class Crew {
 public:
  Crew(Doorbell& bell, std::uint32_t workers, Patience patience);

  // Before the first call. `alone`: the work has threads of its own, the other workers sleep.
  void take(Work& work, bool alone);

  // Where a worker waits for its next call: until this word has another value. kStop ends.
  const Word& alarm(std::uint32_t worker) const { return worker == 0 ? bell_.call : turn_->wake; }
  // One call, on each worker's own thread. Worker 0 with kStop: tells the others.
  void answer(std::uint32_t worker, std::uint32_t call);
  // alarm and answer until kStop.
  void serve(std::uint32_t worker);

 private:
  struct alignas(128) Counter {
    std::atomic<std::uint64_t> next{0};
  };
  struct Turn {
    Work* work = nullptr;
    std::uint32_t participants = 1, slot = 0;
    std::unique_ptr<Counter[]> counters;       // by step
    alignas(128) Word wake{0};                 // call number, from worker 0 to the others
    alignas(128) Word ready{0};
    alignas(128) Word arrived{0};
  };
  void perform(std::uint32_t worker);

  Doorbell& bell_;
  const std::uint32_t workers_;
  const Patience patience_;
  const std::unique_ptr<Turn> turn_;
};

}  // namespace hone::cpu

#endif
