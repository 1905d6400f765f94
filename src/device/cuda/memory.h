// Device memory of a session: one physical allocation a buffer, seen at one of a few addresses or at none. A program's
// launches see their own buffers and the inputs; whatever else the session keeps (the oracle's answer, other programs'
// outputs, pristine copies) has no address then.
#ifndef HONE_DEVICE_CUDA_MEMORY_H
#define HONE_DEVICE_CUDA_MEMORY_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/params.h"
#include "device/cuda/driver.h"
#include "device/device.h"
#include "program/problem.h"

namespace hone::cuda {

inline constexpr std::size_t kAddresses = 3;

// The context, the stream in which everything runs, and the helpers' kernels (share/cuda/helpers.cu).
struct Context {
  CUdevice device = 0;
  CUstream stream = nullptr;
  CUmodule helpers = nullptr;
  int multiprocessors = 1;
  std::size_t l2_bytes = 0, granularity = 0;

  static Result<Context> open(int ordinal, const std::string& cubin);
  int attribute(int which) const;
  // One of the helpers' kernels over about `work` items, a grid-stride loop; `params` is its one parameter.
  template <class Params>
  Result<> run(const char* kernel, std::int64_t work, const Params& params, int threads = kThreads) {
    return launch(kernel, work, &params, threads);
  }
  // Waits for the stream. The error that the work behind it has left.
  Result<> finish() const;

 private:
  Result<> launch(const char* kernel, std::int64_t work, const void* params, int threads);
};

class Memory {
 public:
  static Result<Memory> create(const Context& context, std::size_t bytes, std::size_t addresses);
  // One allocation of exactly this size, which stays where it is and is always shown: what tools that watch accesses know.
  static Result<Memory> create_plain(std::size_t bytes, std::size_t alignment);
  Memory() = default;
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory();

  // These change mappings; nothing may be running on the device.
  Result<> show();
  Result<> hide();
  Result<> move();                  // to the next address, if it has several; shown
  CUdeviceptr address() const { return addresses_.empty() ? 0 : addresses_[current_]; }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return addresses_.empty(); }

 private:
  void swap(Memory& other) noexcept;
  CUmemGenericAllocationHandle handle_ = 0;
  std::vector<CUdeviceptr> addresses_;
  std::size_t current_ = 0, bytes_ = 0;
  bool shown_ = false, plain_ = false;
  int device_ = 0;
};

// Bytes between canaries: before, after, and where strides leave gaps.
class Buffer {
 public:
  // `geometry` of everything when `shape` is null. The canaries are written.
  static Result<Buffer> create(Context& context, std::string name, std::size_t bytes, std::size_t alignment,
                               const TensorShape* shape, std::uint64_t key, std::size_t addresses);
  // Without canaries, in plain memory.
  static Result<Buffer> create_plain(std::string name, std::size_t bytes, std::size_t alignment, const TensorShape* shape);

  const std::string& name() const { return name_; }
  Memory& memory() { return memory_; }
  CUdeviceptr data() const { return memory_.address() + start_; }
  std::size_t bytes() const { return bytes_; }
  const Geometry& geometry() const { return geometry_; }
  // Element patterns (the low `element` bytes repeated) over everything that elements cover.
  Result<> fill(Context& context, std::uint64_t pattern, std::size_t element);
  Result<> copy_from(Context& context, CUdeviceptr from);
  // Into `report`, two for the buffer; repaired.
  Result<> guard(Context& context, CUdeviceptr report);

 private:
  // The parts of the region that hold canaries, in words.
  std::vector<std::array<std::int64_t, 2>> guarded() const;
  PatternParams pattern_params(const std::array<std::int64_t, 2>& words) const;

  std::string name_;
  Memory memory_;
  std::size_t start_ = 0, bytes_ = 0;
  Geometry geometry_ = {};
  std::uint64_t key_ = 0;
};

// Overlapping strides count as covering everything.
Geometry geometry_of(const TensorShape& shape);
View view_of(const TensorShape& shape, CUdeviceptr data);

}  // namespace hone::cuda

#endif
