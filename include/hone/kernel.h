// What a CPU kernel sees. Include this from kernel.cpp; it needs nothing else.
//
// A kernel is an ordinary function (or function template) whose first parameter is
// `const hone::Block&`; the others receive the launch's arguments in order:
//
//   template <int kTile>
//   void scale(const hone::Block& block, const float* x, float* y, std::int64_t n);
//
// It is called once per block index, from the device's pinned worker threads, in no
// particular order; blocks of one launch must not depend on one another. Launches of a plan
// run one after the other, each after all blocks of the one before it.
#ifndef HONE_KERNEL_H
#define HONE_KERNEL_H

#include <cstddef>
#include <cstdint>

#include <hone/types.h>

namespace hone {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// Layout is part of the runner's ABI: change it together with src/device/cpu.
struct Block {
  Dim3 index;                  // this block's index, 0 <= index < grid
  Dim3 grid;                   // the launch's grid
  std::uint32_t worker = 0;    // worker thread that runs this block, 0 <= worker < workers
  std::uint32_t workers = 1;   // worker threads of the device
  void* shared = nullptr;      // scratch of the launch's `.shared(bytes)`, 64-byte aligned, one a
                               // worker; its contents are undefined when a block begins
  std::size_t shared_bytes = 0;
};

}  // namespace hone

#endif
