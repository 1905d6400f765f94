// Shared memory of the CPU device: what buffers lie in it, where, and what surrounds them.
#ifndef HONE_DEVICE_CPU_ARENA_H
#define HONE_DEVICE_CPU_ARENA_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "device/poison.h"
#include "program/problem.h"

namespace hone::cpu {

inline constexpr std::size_t kPage = 4096;

struct Run {
  std::size_t begin = 0, bytes = 0;
};
// The bytes of a buffer that its elements cover; what lies between is a gap (a pitch wider than a row).
// In increasing order, neighbours joined. Overlapping strides count as covering everything.
std::vector<Run> runs_of(const TensorShape& shape);

// An anonymous file in memory (memfd), mapped here; other processes get its descriptor.
class SharedMemory {
 public:
  static Result<SharedMemory> create(const std::string& name);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept { swap(other); return *this; }
  ~SharedMemory();

  // All zero bytes, whatever was there. Kind out_of_memory when the machine has not enough. `holes` are
  // in order and get no memory.
  Result<> resize(std::size_t bytes, std::span<const Run> holes = {});
  // Nobody can change the size from now on (a runner that could would end this process by SIGBUS).
  Result<> seal();
  // A second descriptor that can only be mapped for reading; the caller closes it.
  Result<int> read_only() const;

  int fd() const { return fd_; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void swap(SharedMemory& other) noexcept;
  int fd_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

struct BufferSpec {
  std::string name;
  std::size_t bytes = 0, alignment = 64;
  std::vector<Run> runs;              // empty: all of it
  bool rotated = true;                // has a place of its own in every slot
};

// Buffers in a row, each between guards that the runner cannot touch (as wide as the buffer, within
// limits: address space, not memory), with at least a page of canary bytes on both sides and canaries
// in its gaps. Every rotated buffer exists once a slot, at
// another offset within its page.
class Layout {
 public:
  explicit Layout(std::size_t slots) : slots_(slots) {}
  std::size_t add(BufferSpec spec);                   // its index
  std::size_t slots() const { return slots_; }
  std::size_t bytes() const { return end_; }
  std::size_t count() const { return buffers_.size(); }
  const BufferSpec& spec(std::size_t buffer) const { return buffers_[buffer].spec; }
  std::size_t offset(std::size_t buffer, std::size_t slot) const;
  std::span<const Run> guards() const { return guards_; }

  // `pattern` is a page of secret random bytes.
  void write_canaries(std::byte* base, std::span<const std::byte> pattern) const;
  // What differs from the pattern; repaired, so that it is reported once.
  std::vector<GuardDamage> check_canaries(std::byte* base, std::span<const std::byte> pattern) const;

 private:
  struct Buffer {
    BufferSpec spec;
    std::vector<std::size_t> offset;                  // by slot, or one
  };
  // Canary bytes [begin, end) of the arena, and the buffer that they guard.
  template <class Visit>
  void for_each_canary(Visit visit) const;

  std::size_t slots_;
  std::size_t end_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<Run> guards_;
};

// Fills runs of a buffer with an element pattern (its low `element` bytes).
void fill_pattern(std::byte* buffer, std::size_t bytes, std::span<const Run> runs, std::uint64_t pattern,
                  std::size_t element);

}  // namespace hone::cpu

#endif
