// Work outside the timed span, seen in memory. A program can write into the doorbell, and a few microseconds
// of CPU time are every call's own, so that the clock alone does not show a kernel that reports its end early
// or begins before `go`. Secret places in the call's buffers do:
//   inputs    random lines hold other data of the same tensor until the program has reported `armed`
//   outputs   random elements are untouched at that time, and have their last value at `done`
#ifndef HONE_DEVICE_CPU_TRIPWIRE_H
#define HONE_DEVICE_CPU_TRIPWIRE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/cpu/arena.h"

namespace hone::cpu {

struct TripwireBuffer {
  std::byte* at = nullptr;
  std::size_t bytes = 0, element = 1;
  std::span<const Run> runs;         // empty: all of it
};

class Tripwires {
 public:
  // Draws 64 secret bits.
  using Draw = std::function<std::uint64_t()>;

  // Before the bell, with every buffer as the program shall find it. Changes lines of the inputs.
  Tripwires(std::span<const TripwireBuffer> inputs, std::span<const TripwireBuffer> outputs, const Draw& draw);
  ~Tripwires() { restore(); }
  Tripwires(const Tripwires&) = delete;
  Tripwires& operator=(const Tripwires&) = delete;

  // After `armed`, before `go`: the inputs are true and cold again. False: an output has been written.
  bool reveal();
  // At once after `done`.
  void ended();
  // When every thread sleeps. False: an output has been written since `done`.
  bool unchanged() const;

 private:
  static constexpr std::size_t kLine = 64, kLines = 32, kElements = 32;
  struct Line {
    std::byte* at;
    std::size_t bytes;
    std::array<std::byte, kLine> truth;
  };
  struct Element {
    const std::byte* at;
    std::size_t bytes;
    std::array<std::byte, 8> before, at_end;
  };
  void restore();
  std::vector<Line> lines_;
  std::vector<Element> elements_;
};

}  // namespace hone::cpu

#endif
