// The trusted device code of the CUDA device: fills inputs, guards buffers, compares outputs. Compiled with -fmad=false:
// each operation is rounded by itself, as on the host. Nothing depends on the order in which blocks run: floating sums are
// formed in a fixed tree, atomic additions are of integers.
#include <hone/convert.h>
#include <hone/philox.h>

#include "params.h"

namespace hone::cuda {
namespace {

using Word = unsigned long long;

__device__ std::int64_t thread_index() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::int64_t thread_count() { return std::int64_t{gridDim.x} * blockDim.x; }

// splitmix64
__device__ std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Offset in elements of the `index`-th in row-major order.
__device__ std::int64_t offset_of(std::int32_t rank, const std::int64_t* shape, const std::int64_t* strides, std::int64_t index) {
  std::int64_t offset = 0;
  for (std::int32_t k = rank; k-- > 0;) {
    if (k == 0) return offset + index * strides[0];
    offset += index % shape[k] * strides[k];
    index /= shape[k];
  }
  return offset;
}

__device__ std::int64_t row_offset(const View& view, std::int64_t row) {
  return offset_of(view.rank - 1, view.shape, view.strides, row);
}

__device__ double element(const View& view, std::int64_t offset) {
  const auto dtype = static_cast<DType>(view.dtype);
  return load_element(dtype, static_cast<const unsigned char*>(view.data) + offset * static_cast<std::int64_t>(size_of(dtype)));
}

// Beyond the dtype's range a right result is infinite.
__device__ double as_rounded(std::int32_t dtype, double value) {
  if (!(fabs(value) > 65504.0) || !is_finite(value)) return value;
  unsigned char bytes[8];
  store_element(static_cast<DType>(dtype), value, bytes);
  if (is_finite(load_element(static_cast<DType>(dtype), bytes))) return value;
  return detail::is_negative(value) ? -detail::double_of(0x7ff0000000000000u) : detail::double_of(0x7ff0000000000000u);
}

// A row of both sides.
struct RowPair {
  const Pair& pair;
  std::int64_t got_row, expected_row, row;
  std::int64_t got_step, expected_step;

  __device__ RowPair(const Pair& p, std::int64_t r) : pair(p), row(r) {
    got_row = p.got.data != nullptr ? row_offset(p.got, r) : 0;
    expected_row = p.reference == nullptr ? row_offset(p.expected, r) : 0;
    got_step = p.got.strides[p.got.rank - 1];
    expected_step = p.reference == nullptr ? p.expected.strides[p.expected.rank - 1] : 0;
  }
  __device__ double got(std::int64_t column) const {
    return pair.got.data != nullptr ? element(pair.got, got_row + column * got_step) : 0.0;
  }
  __device__ double expected(std::int64_t column) const {
    if (pair.reference != nullptr) return as_rounded(pair.dtype, pair.reference[row * pair.columns + column]);
    return element(pair.expected, expected_row + column * expected_step);
  }
};

__device__ double larger(double a, double b) { return a < b ? b : a; }   // std::max
__device__ double quotient(double error, double size) {
  if (error == 0) return 0;
  return size > 0 ? error / size : detail::double_of(0x7ff0000000000000u);
}

__device__ void add(SumsPart& to, const SumsPart& from) {
  to.error2 += from.error2;
  to.got2 += from.got2;
  to.expected2 += from.expected2;
  to.worst_row = larger(to.worst_row, from.worst_row);
  to.worst_bound = larger(to.worst_bound, from.worst_bound);
  to.max_error = larger(to.max_error, from.max_error);
  to.max_expected = larger(to.max_expected, from.max_expected);
  to.max_got = larger(to.max_got, from.max_got);
  to.special += from.special;
}

template <int kCount>
__device__ void join_block(SumsPart mine, SumsPart* shared, SumsPart* out) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int width = kCount / 2; width > 0; width /= 2) {
    if (static_cast<int>(threadIdx.x) < width) add(shared[threadIdx.x], shared[threadIdx.x + width]);
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = shared[0];
  __syncthreads();
}

__device__ bool covered(const Geometry& geometry, std::int64_t bytes, std::int64_t at) {
  if (at < 0 || at >= bytes) return false;
  for (std::int32_t k = 0; k < geometry.axes; ++k) {
    const std::int64_t index = at / geometry.stride[k];
    if (index >= geometry.count[k]) return false;
    at -= index * geometry.stride[k];
  }
  return at < geometry.run;
}

// All eight bytes of the word at `at` (from the buffer's start) covered, none, or some.
enum class Cover { all, none, some };
__device__ Cover cover_of(const Geometry& geometry, std::int64_t bytes, std::int64_t at) {
  if (at + 8 <= 0 || at >= bytes) return Cover::none;
  if (geometry.axes == 0 && at >= 0 && at + 8 <= bytes) return Cover::all;
  int count = 0;
  for (int i = 0; i < 8; ++i) count += covered(geometry, bytes, at + i) ? 1 : 0;
  return count == 8 ? Cover::all : count == 0 ? Cover::none : Cover::some;
}

__device__ std::uint64_t canary(std::uint64_t key, std::int64_t word) { return mix(key ^ mix(static_cast<std::uint64_t>(word))); }

}  // namespace

extern "C" {

// Four elements a thread: one Philox block for most distributions, two for those that take two words an element.
__global__ void hone_fill(const FillParams p) {
  enum { uniform, bell, integers, bits, constant, log_scale, sparse, structured };
  const auto dtype = static_cast<DType>(p.dtype);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const bool floating = is_floating(dtype);
  const auto low = static_cast<float>(p.low), high = static_cast<float>(p.high);
  for (std::int64_t group = thread_index(); group * 4 < p.elements; group += thread_count()) {
    PhiloxBlock words = {}, more = {}, choice = {};
    if (p.kind == bell || p.kind == sparse) {
      words = random_block(p.seed, p.stream, p.call, static_cast<std::uint64_t>(group) * 2);
      more = random_block(p.seed, p.stream, p.call, static_cast<std::uint64_t>(group) * 2 + 1);
      if (p.kind == sparse) choice = random_block(p.seed, p.stream | 0x80000000u, p.call, static_cast<std::uint64_t>(group));
    } else if (p.kind != constant && p.kind != structured) {
      words = random_block(p.seed, p.stream, p.call, static_cast<std::uint64_t>(group));
    }
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = group * 4 + k;
      if (i >= p.elements) break;
      unsigned char* const at = static_cast<unsigned char*>(p.data) + offset_of(p.rank, p.shape, p.strides, i) * size;
      const std::uint32_t word = words.word[k];
      float value = 0;
      switch (p.kind) {
        case uniform: value = uniform_float(word, low, high - low); break;
        case bell:
        case sparse: {
          const PhiloxBlock& two = k < 2 ? words : more;
          value = bell_float(two.word[2 * (k % 2)], two.word[2 * (k % 2) + 1], bell_scale(p.kind == sparse ? 1.0f : high));
          if (p.kind == sparse && below(choice.word[k], static_cast<std::uint64_t>(p.high)) != 0) value = 0;
          break;
        }
        case log_scale:
          value = power_of_two(word, static_cast<std::int32_t>(p.low), static_cast<std::uint32_t>(p.high - p.low) + 1);
          break;
        case constant:
          if (!floating) {
            store_element(dtype, p.low, at);
            continue;
          }
          value = low;
          break;
        case integers:
        case bits: {
          const std::int64_t whole = static_cast<std::int64_t>(p.low) + below(word, static_cast<std::uint64_t>(p.high - p.low) + 1);
          if (p.kind == integers && floating) {
            value = static_cast<float>(whole);
            break;
          }
          if (p.kind == bits)
            for (std::int64_t b = 0; b < size; ++b) at[b] = static_cast<unsigned char>(whole >> (8 * b));
          else
            store_element(dtype, static_cast<double>(whole), at);
          continue;
        }
        default:
          for (std::int64_t b = 0; b < size; ++b) at[b] = 0;
          continue;
      }
      if (dtype == DType::bf16) {
        const bf16 narrow = to_bf16(value);
        std::memcpy(at, &narrow, sizeof narrow);
      } else if (dtype == DType::f32) {
        std::memcpy(at, &value, sizeof value);
      } else {
        store_element(dtype, static_cast<double>(value), at);
      }
    }
  }
}

__global__ void hone_pattern(const PatternParams p) {
  for (std::int64_t word = p.begin + thread_index(); word < p.end; word += thread_count()) {
    const std::int64_t at = word * 8 - p.start;
    const Cover cover = cover_of(p.geometry, p.bytes, at);
    const std::uint64_t guard = canary(p.key, word);
    if (cover != Cover::some) {   // the pattern is a multiple of the element from the start
      if ((cover == Cover::all) == (p.fill != 0)) p.region[word] = p.fill != 0 ? p.pattern : guard;
      continue;
    }
    auto* const bytes = reinterpret_cast<unsigned char*>(p.region + word);
    for (int i = 0; i < 8; ++i) {
      if (covered(p.geometry, p.bytes, at + i) != (p.fill != 0)) continue;
      bytes[i] = static_cast<unsigned char>(p.fill != 0 ? p.pattern >> (8 * ((at + i) % p.element)) : guard >> (8 * i));
    }
  }
}

__global__ void hone_guard(const GuardParams p) {
  for (std::int64_t word = p.begin + thread_index(); word < p.end; word += thread_count()) {
    const std::int64_t at = word * 8 - p.start;
    const Cover cover = cover_of(p.geometry, p.bytes, at);
    const std::uint64_t guard = canary(p.key, word);
    if (cover == Cover::all || (cover == Cover::none && p.region[word] == guard)) continue;
    auto* const bytes = reinterpret_cast<unsigned char*>(p.region + word);
    for (int i = 0; i < 8; ++i) {
      const auto right = static_cast<unsigned char>(guard >> (8 * i));
      if (bytes[i] == right || covered(p.geometry, p.bytes, at + i)) continue;
      Damage& damage = p.damage[at + i < 0 ? 0 : 1];
      atomicMin(reinterpret_cast<long long*>(&damage.first), static_cast<long long>(at + i));
      atomicAdd(reinterpret_cast<Word*>(&damage.bytes), Word{1});
      bytes[i] = right;
    }
  }
}

__global__ void hone_restore(const RestoreParams p) {
  for (std::int64_t word = thread_index(); word * 8 < p.bytes; word += thread_count()) {
    const std::int64_t at = word * 8;
    if (cover_of(p.geometry, p.bytes, at) == Cover::all) {
      reinterpret_cast<std::uint64_t*>(p.to)[word] = reinterpret_cast<const std::uint64_t*>(p.from)[word];
      continue;
    }
    for (int i = 0; i < 8; ++i)
      if (covered(p.geometry, p.bytes, at + i)) p.to[at + i] = p.from[at + i];
  }
}

__global__ void hone_hash(const HashParams p) {
  Word a = 0, b = 0;
  const std::int64_t words = p.bytes / 8;
  for (std::int64_t word = thread_index(); word * 8 < p.bytes; word += thread_count()) {
    std::uint64_t value = 0;
    if (word < words) value = reinterpret_cast<const std::uint64_t*>(p.data)[word];
    else
      for (std::int64_t i = word * 8; i < p.bytes; ++i) value |= std::uint64_t{p.data[i]} << (8 * (i - word * 8));
    const std::uint64_t mixed = mix(value ^ mix(p.key + static_cast<std::uint64_t>(word)));
    a += mixed;
    b += mix(mixed ^ p.key);
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    a += __shfl_down_sync(0xffffffffu, a, lane);
    b += __shfl_down_sync(0xffffffffu, b, lane);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&p.sum[0], a);
    atomicAdd(&p.sum[1], b);
  }
}

__global__ void hone_digest(const DigestParams p) {
  Word sum[4] = {};
  const auto size = static_cast<std::int64_t>(size_of(static_cast<DType>(p.view.dtype)));
  const std::int64_t step = p.view.strides[p.view.rank - 1], count = (p.end - p.begin) * p.columns;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t at = (row_offset(p.view, p.begin + i / p.columns) + i % p.columns * step) * size;
    const auto* const bytes = static_cast<const unsigned char*>(p.view.data) + at;
    std::uint64_t value = 0;
    for (std::int64_t b = 0; b < size; ++b) value |= std::uint64_t{bytes[b]} << (8 * b);
    std::uint64_t mixed = mix(value ^ mix(static_cast<std::uint64_t>(p.first + i)));
    for (int k = 0; k < 4; ++k) sum[k] += mixed = mix(mixed + static_cast<std::uint64_t>(k) * 0xd6e8feb86659fd93u);
  }
  for (int k = 0; k < 4; ++k) {
    for (int lane = 16; lane > 0; lane /= 2) sum[k] += __shfl_down_sync(0xffffffffu, sum[k], lane);
    if (threadIdx.x % 32 == 0) atomicAdd(&p.sum[k], sum[k]);
  }
}

__global__ void hone_scrub(const ScrubParams p) {
  std::uint64_t sum = 0;
  for (std::int64_t word = thread_index(); word < p.words; word += thread_count()) {
    if (p.sink != nullptr) sum += p.data[word];
    else p.data[word] = mix(p.seed + static_cast<std::uint64_t>(word));
  }
  if (p.sink != nullptr && sum == p.seed) atomicAdd(p.sink, Word{1});
}

// Holds the stream back until the host has queued everything behind it.
__global__ void hone_block(const BlockParams p) {
  std::uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  while (*p.go == 0) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin > p.limit_ns) {
      *p.gave_up = 1;
      return;
    }
  }
}

__global__ void __launch_bounds__(kThreads) hone_sums(const SumsParams p) {
  __shared__ SumsPart shared[kThreads];
  const double inverse = 1 / p.scale;
  const bool bound = p.bound_floor != 0 || p.bound_limit != 0;
  for (std::int64_t item = blockIdx.x; item < (p.end - p.begin) * p.pieces; item += gridDim.x) {
    const RowPair row(p.pair, p.begin + item / p.pieces);
    const std::int64_t first = item % p.pieces * kPiece, last = first + kPiece < p.pair.columns ? first + kPiece : p.pair.columns;
    SumsPart mine = {};
    for (std::int64_t i = first + threadIdx.x; i < last; i += kThreads) {
      const double got = row.got(i), want = row.expected(i);
      if (!is_finite(got) || !is_finite(want)) {
        ++mine.special;
        continue;
      }
      const double x = got * inverse, y = want * inverse, d = x - y;
      mine.error2 += d * d;
      mine.expected2 += y * y;
      mine.got2 += x * x;
      mine.max_error = larger(mine.max_error, fabs(d));
      mine.max_expected = larger(mine.max_expected, fabs(y));
      mine.max_got = larger(mine.max_got, fabs(x));
      if (bound) mine.worst_bound = larger(mine.worst_bound, quotient(fabs(d) * p.scale, p.bound_floor + p.bound_limit * fabs(want)));
    }
    join_block<kThreads>(mine, shared, &p.parts[item]);
  }
}

__global__ void hone_join_rows(const JoinParams p) {
  for (std::int64_t row = thread_index(); row < p.rows; row += thread_count()) {
    SumsPart sum = p.parts[row * p.pieces];
    for (std::int64_t k = 1; k < p.pieces; ++k) add(sum, p.parts[row * p.pieces + k]);
    sum.worst_row = sqrt(quotient(sum.error2, sum.expected2));
    p.out[row] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) hone_join_region(const JoinParams p) {
  __shared__ SumsPart shared[kThreads];
  SumsPart mine = {};
  for (std::int64_t row = threadIdx.x; row < p.rows; row += kThreads) add(mine, p.parts[row]);
  join_block<kThreads>(mine, shared, p.out);
}

__global__ void hone_odd(const OddParams p) {
  const std::int64_t count = (p.end - p.begin) * p.pair.columns;
  const RowPair begin(p.pair, p.begin);
  const double first_got = begin.got(0), first_expected = begin.expected(0);
  bool varies = false, expected_varies = false;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t column = i % p.pair.columns;
    const RowPair row(p.pair, p.begin + i / p.pair.columns);
    const double got = row.got(column), want = row.expected(column);
    varies = varies || !(got == first_got);
    expected_varies = expected_varies || !(want == first_expected);
    const bool got_finite = is_finite(got), want_finite = is_finite(want), special = !got_finite || !want_finite;
    if (!special && !p.finite_too) continue;
    if (special) {
      if (is_nan(want) ? is_nan(got) : got == want) continue;
    } else if (fabs(got - want) <= larger(0.015625 * fabs(want), p.absolute + p.relative * fabs(want))) {
      continue;
    }
    Word *counter = &p.counts->wrong, *first = &p.counts->first_wrong;
    bool poison = p.poison != 0 && p.pair.got.data != nullptr;
    if (poison) {
      const auto* const bytes = static_cast<const unsigned char*>(p.pair.got.data) + (row.got_row + column * row.got_step) * p.element;
      for (int b = 0; b < p.element; ++b) poison = poison && bytes[b] == static_cast<unsigned char>(p.pattern >> (8 * b));
    }
    if (poison) {
      counter = &p.counts->not_written;
      first = &p.counts->first_not_written;
    } else if (!got_finite && want_finite) {
      counter = &p.counts->non_finite;
      first = &p.counts->first_non_finite;
    } else if (special) {
      atomicAdd(&p.counts->special, Word{1});
    }
    atomicAdd(counter, Word{1});
    atomicMin(first, static_cast<Word>(i));
  }
  if (varies) p.counts->varies = 1;
  if (expected_varies) p.counts->expected_varies = 1;
}

__global__ void hone_elements(const ElementsParams p) {
  if (threadIdx.x >= 4) return;
  const RowPair row(p.pair, p.row[threadIdx.x]);
  p.out[2 * threadIdx.x] = row.got(p.column[threadIdx.x]);
  p.out[2 * threadIdx.x + 1] = row.expected(p.column[threadIdx.x]);
}

__global__ void hone_differ(const DifferParams p) {
  for (std::int64_t i = thread_index(); i < p.rows * p.pair.columns; i += thread_count()) {
    const RowPair row(p.pair, i / p.pair.columns);
    if (row.got(i % p.pair.columns) == row.expected(i % p.pair.columns)) continue;
    *p.differs = 1;
    return;
  }
}

__global__ void hone_reference(const ReferenceParams p) {
  for (std::int64_t i = p.begin * p.columns + thread_index(); i < p.end * p.columns; i += thread_count()) {
    if (p.clear) p.data[i] = 0;
    else if (is_nan(p.data[i])) atomicMin(p.first_nan, static_cast<Word>(i));
  }
}

}  // extern "C"
}  // namespace hone::cuda
