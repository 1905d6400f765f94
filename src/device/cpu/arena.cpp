#include "device/cpu/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/text.h"

namespace hone::cpu {
namespace {

constexpr std::size_t kLeastGuard = std::size_t{64} << 10, kLargestGuard = std::size_t{64} << 20;

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);)
    if (key == "MemAvailable:") return std::strtoull(rest.c_str(), nullptr, 10) * 1024;
  return ~std::size_t{0};
}

}  // namespace

Result<SharedMemory> SharedMemory::create(const std::string& name) {
  SharedMemory memory;
  memory.fd_ = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0)
    return fail(ErrorKind::environment, "cannot make shared memory (memfd_create): {}", std::strerror(errno));
  return memory;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (fd_ >= 0) ::close(fd_);
}

void SharedMemory::swap(SharedMemory& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

Result<> SharedMemory::resize(std::size_t bytes, std::span<const Run> holes) {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
  if (::ftruncate(fd_, 0) != 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0)
    return fail(ErrorKind::out_of_memory, "cannot get {} of shared memory: {}", format_bytes(bytes),
                std::strerror(errno));
  if (bytes == 0) return {};
  std::size_t needed = bytes;
  for (const Run& hole : holes) needed -= hole.bytes;
  // Without this the system would end this process, not refuse the request.
  const std::size_t available = available_memory();
  if (needed > available / 10 * 9)
    return fail(Error{ErrorKind::out_of_memory, fmt::format("buffers need {} of memory, the machine has {} available",
                                                            format_bytes(needed), format_bytes(available))}
                    .with_hint("smaller workloads, or a machine with more memory"));
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= holes.size(); ++i) {
    const std::size_t end = i < holes.size() ? holes[i].begin : bytes;
    const int code =
        end > begin ? ::posix_fallocate(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) : 0;
    if (code != 0)
      return fail(ErrorKind::out_of_memory, "cannot get {} of shared memory: {}", format_bytes(needed),
                  std::strerror(code));
    if (i < holes.size()) begin = holes[i].begin + holes[i].bytes;
  }
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED)
    return fail(ErrorKind::out_of_memory, "cannot map {} of shared memory: {}", format_bytes(bytes),
                std::strerror(errno));
  data_ = static_cast<std::byte*>(at);
  size_ = bytes;
  return {};
}

Result<> SharedMemory::seal() {
  if (::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(ErrorKind::environment, "cannot seal shared memory: {}", std::strerror(errno));
  return {};
}

Result<int> SharedMemory::read_only() const {
  const int fd = ::open(fmt::format("/proc/self/fd/{}", fd_).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(ErrorKind::environment, "cannot reopen shared memory for reading (is /proc mounted?): {}",
                std::strerror(errno));
  return fd;
}

std::vector<Run> runs_of(const TensorShape& shape) {
  const std::size_t element = size_of(shape.dtype);
  struct Axis {
    std::int64_t count, stride;
  };
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.shape.size(); ++i)
    if (shape.shape[i] != 1) axes.push_back({shape.shape[i], shape.strides[i]});
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  const std::vector<Run> everything = {{0, shape.bytes()}};
  // From the inside out: as long as the axes are dense, they are one run.
  std::int64_t dense = 1, extent = 1;
  std::size_t first = 0;
  for (; first < axes.size() && axes[first].stride == dense; ++first) dense *= axes[first].count;
  extent = dense;
  std::int64_t runs = 1;
  constexpr std::int64_t kMostRuns = 4 << 20;
  for (std::size_t i = first; i < axes.size(); ++i) {
    if (axes[i].stride < extent || axes[i].count < 1) return everything;
    extent = axes[i].stride * (axes[i].count - 1) + extent;
    runs *= axes[i].count;
    if (runs > kMostRuns) return everything;
  }
  std::vector<Run> out = {{0, static_cast<std::size_t>(dense) * element}};
  for (std::size_t i = first; i < axes.size(); ++i) {
    const std::size_t inner = out.size();
    out.reserve(inner * static_cast<std::size_t>(axes[i].count));
    for (std::int64_t at = 1; at < axes[i].count; ++at)
      for (std::size_t k = 0; k < inner; ++k)
        out.push_back({out[k].begin + static_cast<std::size_t>(at * axes[i].stride) * element, out[k].bytes});
  }
  return out;
}

std::size_t Layout::add(BufferSpec spec) {
  Buffer buffer;
  if (spec.runs.empty()) spec.runs = {{0, spec.bytes}};
  const std::size_t alignment = std::max<std::size_t>(spec.alignment, 64);
  // A stray access that goes wrong by a multiple of a row lands in a guard, not in another buffer.
  const std::size_t guard = std::clamp(round_up(spec.bytes, kPage), kLeastGuard, kLargestGuard);
  const auto add_guard = [&](std::size_t at) {
    guards_.push_back({at, guard});
    end_ = at + guard;
  };
  if (guards_.empty()) add_guard(0);
  for (std::size_t slot = 0; slot < (spec.rotated ? slots_ : 1); ++slot) {
    Run& before = guards_.back();
    before.bytes = std::max(before.bytes, guard);
    // Another offset within the page in each slot, as the alignment allows.
    const std::size_t shift = alignment < kPage ? slot * round_up(1088, alignment) % kPage : 0;
    const std::size_t at = round_up(before.begin + before.bytes + kPage, std::max(alignment, kPage)) + shift;
    buffer.offset.push_back(at);
    add_guard(round_up(at + spec.bytes + kPage, kPage));
  }
  buffer.spec = std::move(spec);
  buffers_.push_back(std::move(buffer));
  return buffers_.size() - 1;
}

std::size_t Layout::offset(std::size_t buffer, std::size_t slot) const {
  const Buffer& each = buffers_[buffer];
  return each.offset[each.spec.rotated ? slot : 0];
}

template <class Visit>
void Layout::for_each_canary(Visit visit) const {
  std::size_t next_guard = 0;
  for (const Buffer& buffer : buffers_) {
    for (const std::size_t at : buffer.offset) {
      while (guards_[next_guard + 1].begin < at) ++next_guard;
      const std::size_t before = guards_[next_guard].begin + guards_[next_guard].bytes,
                        after = guards_[next_guard + 1].begin;
      visit(buffer.spec, at, before, at);
      std::size_t covered = at;
      for (const Run& run : buffer.spec.runs) {
        if (at + run.begin > covered) visit(buffer.spec, at, covered, at + run.begin);
        covered = std::max(covered, at + run.begin + run.bytes);
      }
      visit(buffer.spec, at, covered, after);
    }
  }
}

void Layout::write_canaries(std::byte* base, std::span<const std::byte> pattern) const {
  for_each_canary([&](const BufferSpec&, std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      const std::size_t phase = i % kPage, take = std::min(end - i, kPage - phase);
      std::memcpy(base + i, pattern.data() + phase, take);
      i += take;
    }
  });
}

std::vector<GuardDamage> Layout::check_canaries(std::byte* base, std::span<const std::byte> pattern) const {
  std::vector<GuardDamage> damage;
  std::size_t last_buffer = 0;
  for_each_canary([&](const BufferSpec& spec, std::size_t at, std::size_t begin, std::size_t end) {
    GuardDamage* open = nullptr;
    for (std::size_t i = begin; i < end;) {
      const std::size_t phase = i % kPage, take = std::min(end - i, kPage - phase);
      if (std::memcmp(base + i, pattern.data() + phase, take) != 0) {
        for (std::size_t k = 0; k < take; ++k) {
          if (base[i + k] == pattern[phase + k]) continue;
          base[i + k] = pattern[phase + k];
          // Before the buffer is one report, everything from its start on another.
          if (open == nullptr) {
            const bool same = begin >= at && !damage.empty() && last_buffer == at && damage.back().first_byte >= 0;
            if (!same)
              damage.push_back({spec.name, static_cast<std::int64_t>(i + k) - static_cast<std::int64_t>(at), 0});
            open = &damage.back();
            last_buffer = at;
          }
          ++open->bytes;
        }
      }
      i += take;
    }
  });
  return damage;
}

void fill_pattern(std::byte* buffer, std::size_t bytes, std::span<const Run> runs, std::uint64_t pattern,
                  std::size_t element) {
  std::byte block[kPage];
  for (std::size_t i = 0; i < kPage; i += element) std::memcpy(block + i, &pattern, element);
  for (const Run& run : runs)
    for (std::size_t done = 0; done < run.bytes && run.begin + done < bytes;) {
      const std::size_t take = std::min(run.bytes - done, kPage);
      std::memcpy(buffer + run.begin + done, block, take);
      done += take;
    }
}

}  // namespace hone::cpu
