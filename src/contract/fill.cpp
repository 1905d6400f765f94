// Input distributions, bit for bit as docs/contract.md defines them. This file is compiled with
// -ffp-contract=off: a fused multiply-add would give other bits than another machine.
#include <algorithm>
#include <array>
#include <cstring>

#include "contract/numeric.h"
#include "contract/philox_fill.h"
#include "contract/task.h"
#include "hone/philox.h"
#include "hone/types.h"

namespace hone {
namespace {

using Kind = Distribution::Kind;

constexpr std::size_t kChunk = 2048;                     // elements at a time: everything stays in the first-level cache
constexpr std::uint32_t kSparseStream = 0x80000000u;     // the words that choose sparse's nonzero elements

// The loops below are compiled twice, the second time for AVX2; both give the same bits.
#if defined(__x86_64__)
#define HONE_INLINE inline __attribute__((always_inline))
#define HONE_TWICE(name, parameters, arguments)                                                     \
  void name##_portable parameters { name arguments; }                                               \
  __attribute__((target("avx2"))) void name##_avx2 parameters { name arguments; }                   \
  void name##_best parameters {                                                                     \
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;                               \
    if (has_avx2) name##_avx2 arguments;                                                            \
    else name##_portable arguments;                                                                 \
  }
#else
#define HONE_INLINE inline
#define HONE_TWICE(name, parameters, arguments) \
  void name##_best parameters { name arguments; }
#endif

HONE_INLINE void make_uniform(const std::uint32_t* words, std::size_t count, float low, float span, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    // As unit_float, but through a signed conversion, which has an instruction; k < 2^24 fits both.
    const float unit = static_cast<float>(static_cast<std::int32_t>(words[i] >> 8)) * (1.0f / 16777216.0f);
    const float scaled = span * unit;
    out[i] = low + scaled;
  }
}
HONE_TWICE(make_uniform, (const std::uint32_t* words, std::size_t count, float low, float span, float* out),
           (words, count, low, span, out))

HONE_INLINE void make_bell(const std::uint32_t* words, std::size_t count, float scale, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = bell_float(words[2 * i], words[2 * i + 1], scale);
}
HONE_TWICE(make_bell, (const std::uint32_t* words, std::size_t count, float scale, float* out), (words, count, scale, out))

HONE_INLINE void narrow_bf16(const float* values, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const bf16 narrow = to_bf16(values[i]);
    std::memcpy(out + 2 * i, &narrow, sizeof narrow);
  }
}
HONE_TWICE(narrow_bf16, (const float* values, std::size_t count, std::byte* out), (values, count, out))

// Elements first .. first + count - 1 (row-major positions), contiguous in memory.
class Filler {
 public:
  Filler(DType dtype, const Distribution& distribution, std::uint64_t seed, std::uint32_t stream, std::uint32_t call)
      : dtype_(dtype), distribution_(distribution), seed_(seed), stream_(stream), call_(call) {}

  void run(std::uint64_t first, std::size_t count, std::byte* out) {
    while (count > 0) {
      const std::size_t part = std::min(count, kChunk);
      chunk(first, part, out);
      first += part;
      count -= part;
      out += part * size_of(dtype_);
    }
  }

 private:
  // Words of `per` words an element, from element `first` on.
  const std::uint32_t* words(std::uint32_t stream, std::uint64_t first, std::size_t count, std::size_t per) {
    const std::uint64_t from = first * per, block = from / 4;
    const std::size_t skip = static_cast<std::size_t>(from % 4), blocks = (skip + count * per + 3) / 4;
    random_blocks(seed_, stream, call_, block, blocks, words_.data());
    return words_.data() + skip;
  }

  void chunk(std::uint64_t first, std::size_t count, std::byte* out) {
    const auto low = static_cast<float>(distribution_.low), high = static_cast<float>(distribution_.high);
    switch (distribution_.kind) {
      case Kind::uniform:
        make_uniform_best(words(stream_, first, count, 1), count, low, high - low, values(out));
        return store(count, out);
      case Kind::bell:
        make_bell_best(words(stream_, first, count, 2), count, bell_scale(high), values(out));
        return store(count, out);
      case Kind::sparse: {
        float* const to = values(out);
        make_bell_best(words(stream_, first, count, 2), count, bell_scale(1.0f), to);
        const std::uint32_t* choice = words(stream_ | kSparseStream, first, count, 1);
        const auto one_of = static_cast<std::uint64_t>(distribution_.high);
        for (std::size_t i = 0; i < count; ++i) to[i] = below(choice[i], one_of) == 0 ? to[i] : 0.0f;
        return store(count, out);
      }
      case Kind::log_scale: {
        const std::uint32_t* const from = words(stream_, first, count, 1);
        float* const to = values(out);
        const auto least = static_cast<std::int32_t>(distribution_.low);
        const auto choices = static_cast<std::uint32_t>(distribution_.high - distribution_.low) + 1;
        for (std::size_t i = 0; i < count; ++i) to[i] = power_of_two(from[i], least, choices);
        return store(count, out);
      }
      case Kind::constant: {
        if (is_floating(dtype_)) {
          std::fill_n(values(out), count, low);
          return store(count, out);
        }
        for (std::size_t i = 0; i < count; ++i) store_element(dtype_, distribution_.low, out + i * size_of(dtype_));
        return;
      }
      case Kind::integers:
      case Kind::bits: return whole(first, count, out);
      case Kind::structured: std::memset(out, 0, count * size_of(dtype_)); return;
    }
  }

  void whole(std::uint64_t first, std::size_t count, std::byte* out) {
    const std::uint32_t* const from = words(stream_, first, count, 1);
    const auto least = static_cast<std::int64_t>(distribution_.low);
    const auto choices = static_cast<std::uint64_t>(distribution_.high - distribution_.low) + 1;
    const std::size_t size = size_of(dtype_);
    if (distribution_.kind == Kind::integers && is_floating(dtype_)) {
      float* const to = values(out);
      for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(least + below(from[i], choices));
      return store(count, out);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t value = least + below(from[i], choices);
      if (distribution_.kind == Kind::bits) std::memcpy(out + i * size, &value, size);   // little-endian
      else store_element(dtype_, static_cast<double>(value), out + i * size);
    }
  }

  // Where binary32 values are made: in place when that is the element type.
  float* values(std::byte* out) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(out) % alignof(float) == 0;
    in_place_ = dtype_ == DType::f32 && aligned;
    return in_place_ ? reinterpret_cast<float*>(out) : values_.data();
  }

  void store(std::size_t count, std::byte* out) {
    if (in_place_) return;
    if (dtype_ == DType::bf16) return narrow_bf16_best(values_.data(), count, out);
    for (std::size_t i = 0; i < count; ++i) store_element(dtype_, static_cast<double>(values_[i]), out + i * size_of(dtype_));
  }

  DType dtype_;
  Distribution distribution_;
  std::uint64_t seed_;
  std::uint32_t stream_, call_;
  bool in_place_ = false;
  std::array<std::uint32_t, 2 * kChunk + 8> words_;
  std::array<float, kChunk> values_;
};

}  // namespace

void fill_tensor(const TensorShape& shape, const Distribution& distribution, std::uint64_t seed, std::uint32_t stream,
                 std::uint32_t call, std::byte* data) {
  Filler filler(shape.dtype, distribution, seed, stream, call);
  // The innermost dimensions that lie without gaps are filled at once.
  std::size_t outer = shape.shape.size();
  std::int64_t run = 1;
  while (outer > 0 && (shape.strides[outer - 1] == run || shape.shape[outer - 1] == 1)) run *= shape.shape[--outer];
  std::vector<std::int64_t> index(outer, 0);
  for (std::uint64_t first = 0;; first += static_cast<std::uint64_t>(run)) {
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < outer; ++k) offset += index[k] * shape.strides[k];
    filler.run(first, static_cast<std::size_t>(run), data + static_cast<std::size_t>(offset) * size_of(shape.dtype));
    std::size_t k = outer;
    while (k > 0 && ++index[k - 1] == shape.shape[k - 1]) index[--k] = 0;
    if (k == 0) return;
  }
}

}  // namespace hone
