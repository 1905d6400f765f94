// Trusted code of FP8 GEMM tasks: quantised inputs, splits of rows into groups, hard inputs, float64 oracle. Tensors A [M, K]
// and B [G, N, K] (or [N, K]) in e4m3, SFA and SFB as FloatScales or PackedScales says, D [M, N], and with groups of rows
// `groups` [M]; axes N, K, and with groups G, M and the list `rows`. A task.cu defines
//
//   using Task = hone::fp8::GroupedTask<128, hone::fp8::FloatScales>;     // or hone::fp8::DenseTask<hone::fp8::FloatScales>
//   void hone_inputs(const hone::TaskCall* call) { Task::inputs(*call); }
//   void hone_oracle(const hone::TaskCall* call) { Task::oracle(*call); }
//   void hone_regions(const hone::TaskCall* call) { Task::regions(*call); }     // groups only
#ifndef HONE_FP8_TASK_CUH
#define HONE_FP8_TASK_CUH

#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <hone/task.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

namespace hone::fp8 {

using Int = std::int64_t;
constexpr int kMostGroups = 256;
constexpr float kLargest = 448.0f;       // of e4m3
constexpr float kTiniest = 1e-30f;       // a block of zeros is scaled as one whose largest element is this

// What an input set does to the numbers before they are quantised.
enum class Shape : int { plain, one_hot, zero_rows, equal_rows, outliers, row_scales, block_scales, positive };

struct Split {
  int groups;
  int starts[kMostGroups], rows[kMostGroups];
};

// float32: A's at [step][row], B's at [rows of all groups / 128][step]; a step is 128 of K.
struct FloatScales {
  using Element = float;
  static __device__ float usable(float scale) { return scale; }
  static __device__ float nan() { return __int_as_float(0x7fc00000); }
  static __device__ void put_a(float* to, Int m, Int row, Int step, float scale) { to[step * m + row] = scale; }
  // By every thread of a block, for the 128 rows from `row` on.
  static __device__ void put_b(float* to, Int, Int steps, Int row, Int step, float scale) {
    if (threadIdx.x == 0) to[row / 128 * steps + step] = scale;
  }
  static __device__ double a(const float* from, Int m, Int row, Int step) { return static_cast<double>(from[step * m + row]); }
  static __device__ double b(const float* from, Int, Int steps, Int row, Int step) { return static_cast<double>(from[row / 128 * steps + step]); }
};

// UE8M0, powers of two, four steps side by side as one 32-bit word: A's at [step / 4][row][step % 4], B's at
// [group][step / 4][row of the group][step % 4], all 128 rows of a block alike.
struct PackedScales {
  using Element = std::uint8_t;
  // The next power of two, so that no quotient exceeds the largest element.
  static __device__ float usable(float scale) {
    const std::uint32_t bits = __float_as_uint(scale);
    return __uint_as_float((bits + 0x7fffffu) & 0x7f800000u);
  }
  static __device__ float nan() { return __int_as_float(0x7f800000); }   // exponent 255, which is UE8M0's NaN
  static __device__ Element encoded(float scale) { return static_cast<Element>(__float_as_uint(scale) >> 23); }
  static __device__ double decoded(Element scale) { return exp2(static_cast<double>(scale) - 127); }
  static __device__ Int place_b(Int n, Int steps, Int row, Int step) { return ((row / n * (steps / 4) + step / 4) * n + row % n) * 4 + step % 4; }
  static __device__ void put_a(Element* to, Int m, Int row, Int step, float scale) { to[(step / 4 * m + row) * 4 + step % 4] = encoded(scale); }
  static __device__ void put_b(Element* to, Int n, Int steps, Int row, Int step, float scale) {
    if (threadIdx.x < 128) to[place_b(n, steps, row + threadIdx.x, step)] = encoded(scale);
  }
  static __device__ double a(const Element* from, Int m, Int row, Int step) { return decoded(from[(step / 4 * m + row) * 4 + step % 4]); }
  static __device__ double b(const Element* from, Int n, Int steps, Int row, Int step) { return decoded(from[place_b(n, steps, row, step)]); }
};

inline Int align_up(Int value, Int to) { return (value + to - 1) / to * to; }

inline void check(const hone::TaskCall& call, cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(status));
  call.fail(call.sink, text);
}
inline cudaStream_t stream_of(const hone::TaskCall& call) { return static_cast<cudaStream_t>(call.stream); }

// Row counts of an input set. The groups' aligned rows add up to at most M.
template <Int kAlign>
Split split(const hone::TaskCall& call) {
  const std::string_view set = call.input_set;
  const Int groups = call.axis("G"), total = call.axis("M");
  Split out{static_cast<int>(groups), {}, {}};
  if (groups > kMostGroups) call.fail(call.sink, "more than 256 groups");
  Int next = 0;
  for (Int g = 0; g < groups; ++g) {
    Int count = call.axis("rows", g);
    const Int slot = align_up(count, kAlign);
    if (set == "tails") count = std::max<Int>(slot - 1 - g * 37 % (kAlign - 1), 1);
    if (set == "imbalance") count = g == groups / 2 ? total - kAlign * (groups - 1) - 3 : 1;
    if (set == "empty-groups") count = g % 2 == 0 ? 0 : count;
    if (set == "short-groups") count = std::min<Int>(1 + g * 53 % (2 * kAlign), slot);
    out.starts[g] = static_cast<int>(next);
    out.rows[g] = static_cast<int>(count);
    next += align_up(count, kAlign);
  }
  return out;
}

static __global__ void write_groups(Split split, std::int32_t* groups, Int m) {
  const Int row = Int{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= m) return;
  int group = -1;
  for (int g = 0; g < split.groups; ++g)
    if (row >= split.starts[g] && row < split.starts[g] + split.rows[g]) group = g;
  groups[row] = group;
}

// Elements 4 i .. 4 i + 3 of a tensor of BF16 numbers with bell-shaped distribution.
__device__ inline void bell_four(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t i, float scale, float* out) {
  for (int half = 0; half < 2; ++half) {
    const hone::PhiloxBlock block = hone::random_block(seed, stream, call, 2 * i + half);
    for (int j = 0; j < 2; ++j)
      out[2 * half + j] = hone::to_float(hone::to_bf16(hone::bell_float(block.word[2 * j], block.word[2 * j + 1], scale)));
  }
}

__device__ inline float largest_of(const float* values) {
  return fmaxf(fmaxf(fabsf(values[0]), fabsf(values[1])), fmaxf(fabsf(values[2]), fabsf(values[3])));
}

__device__ inline std::uint32_t quantise(const float* values, float scale) {
  std::uint32_t out = 0;
  const float inverse = 1.0f / scale;
  for (int i = 0; i < 4; ++i)
    out |= std::uint32_t{__nv_cvt_float_to_fp8(values[i] * inverse, __NV_SATFINITE, __NV_E4M3)} << (8 * i);
  return out;
}

// A power of two from 2^-8 to 2^8, by position.
__device__ inline float position_scale(std::uint64_t seed, std::uint32_t call, Int index) {
  return exp2f(static_cast<float>(hone::below(hone::random_u32(seed, 1002, call, static_cast<std::uint64_t>(index)), 17)) - 8.0f);
}

// One warp a row and step. `groups` is read where padding is to be spoiled.
template <class Scales>
__global__ void fill_a(std::uint32_t* a, typename Scales::Element* scales, const std::int32_t* groups, Int m, Int k, std::uint64_t seed, std::uint32_t call,
                       float deviation_scale, Shape shape, bool nan_padding) {
  const Int at = (Int{blockIdx.x} * blockDim.x + threadIdx.x) / 32, steps = k / 128;
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (at >= m * steps) return;
  const Int row = at / steps, step = at % steps, source = shape == Shape::equal_rows ? 0 : row;
  float values[4];
  bell_four(seed, 1000, call, static_cast<std::uint64_t>((source * k + step * 128) / 4 + lane), deviation_scale, values);
  for (int i = 0; i < 4; ++i) {
    const Int column = step * 128 + lane * 4 + i;
    if (shape == Shape::one_hot) values[i] = column == (row * 37 + 11) % k ? 1.0f : 0.0f;
    if (shape == Shape::zero_rows && row % 2 == 1) values[i] = 0;
    if (shape == Shape::positive) values[i] = fabsf(values[i]);
    if (shape == Shape::outliers && hone::random_u32(seed, 1003, call, static_cast<std::uint64_t>(row * k + column)) % 256 == 0)
      values[i] *= 64;
    if (shape == Shape::row_scales) values[i] *= position_scale(seed, call, at);
  }
  float largest = largest_of(values);
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  const float scale = Scales::usable(fmaxf(largest, kTiniest) / kLargest);
  const bool spoil = nan_padding && groups[row] < 0;
  a[(row * k + step * 128) / 4 + lane] = spoil ? 0x7f7f7f7fu : quantise(values, scale);
  if (lane == 0) Scales::put_a(scales, m, row, step, spoil ? Scales::nan() : scale);
}

// One block of 512 threads a block of 128 by 128 elements; thread t has elements 4 (t mod 32) on of rows t / 32, + 16, ...
template <class Scales>
__global__ void fill_b(std::uint32_t* b, typename Scales::Element* scales, Int n, Int k, std::uint64_t seed, std::uint32_t call, float deviation_scale,
                       Shape shape) {
  __shared__ float warps[16];
  const Int steps = k / 128, block = blockIdx.x, step = block % steps, row0 = block / steps * 128;   // rows of [G * N]
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  float values[8][4], largest = 0;
  for (int r = 0; r < 8; ++r) {
    const Int row = row0 + warp + 16 * r;
    bell_four(seed, 1001, call, static_cast<std::uint64_t>((row * k + step * 128) / 4 + lane), deviation_scale, values[r]);
    for (float& value : values[r]) {
      if (shape == Shape::positive) value = fabsf(value);
      if (shape == Shape::block_scales) value *= position_scale(seed, call, block);
    }
    largest = fmaxf(largest, largest_of(values[r]));
  }
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  if (lane == 0) warps[warp] = largest;
  __syncthreads();
  for (float each : warps) largest = fmaxf(largest, each);
  const float scale = Scales::usable(fmaxf(largest, kTiniest) / kLargest);
  for (int r = 0; r < 8; ++r) b[((row0 + warp + 16 * r) * k + step * 128) / 4 + lane] = quantise(values[r], scale);
  Scales::put_b(scales, n, steps, row0, step, scale);
}

// The value of an e4m3 byte: sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, 0x7f is NaN.
__device__ inline double decode(std::uint32_t byte) {
  const std::uint32_t exponent = byte >> 3 & 15, mantissa = byte & 7;
  double value = exponent == 0 ? mantissa * 0.001953125 : (8 + mantissa) * exp2(static_cast<double>(exponent) - 10);
  if ((byte & 127) == 127) value = __longlong_as_double(0x7ff8000000000000);
  return byte & 128 ? -value : value;
}

// D in float64: blocks of kRows by 128, kRows / 16 by 8 sums a thread, 16 of K at a time. Dequantised factors are exact
// (4 + 24 bits). All rows of a block are of one group, or padding; without `groups` there is one.
template <int kRows, class Scales>
__global__ void __launch_bounds__(256) multiply(const std::uint8_t* a, const typename Scales::Element* scale_a, const std::uint8_t* b,
                                                const typename Scales::Element* scale_b, const std::int32_t* groups, double* d, Int m, Int n, Int k) {
  constexpr int kSums = kRows / 16;
  static_assert(kRows <= 128 && kRows % 16 == 0);
  __shared__ double left[16][kRows], right[16][128], value_of[256];
  const Int row0 = Int{blockIdx.y} * kRows, column0 = Int{blockIdx.x} * 128, steps = k / 128;
  const int tx = static_cast<int>(threadIdx.x % 16), ty = static_cast<int>(threadIdx.x / 16);
  const std::int32_t group = groups == nullptr ? 0 : groups[row0];
  double sums[kSums][8] = {};
  value_of[threadIdx.x] = decode(threadIdx.x);
  if (group >= 0) {
    const int line = static_cast<int>(threadIdx.x / 2), part = static_cast<int>(threadIdx.x % 2) * 8;
    const Int row = row0 + line, column = group * n + column0 + line;
    for (Int at = 0; at < k; at += 16) {
      __syncthreads();
      if (line < kRows) {
        const double factor = Scales::a(scale_a, m, row, at / 128);
        const std::uint64_t bytes = *reinterpret_cast<const std::uint64_t*>(a + row * k + part + at);
        for (int i = 0; i < 8; ++i) left[part + i][line] = value_of[bytes >> (8 * i) & 255] * factor;
      }
      const double factor = Scales::b(scale_b, n, steps, column, at / 128);
      const std::uint64_t bytes = *reinterpret_cast<const std::uint64_t*>(b + column * k + part + at);
      for (int i = 0; i < 8; ++i) right[part + i][line] = value_of[bytes >> (8 * i) & 255] * factor;
      __syncthreads();
#pragma unroll
      for (int c = 0; c < 16; ++c) {
        double x[kSums], y[8];
#pragma unroll
        for (int i = 0; i < kSums; ++i) x[i] = left[c][ty * kSums + i];
#pragma unroll
        for (int j = 0; j < 8; ++j) y[j] = right[c][j / 2 * 32 + tx * 2 + j % 2];
#pragma unroll
        for (int i = 0; i < kSums; ++i)
#pragma unroll
          for (int j = 0; j < 8; ++j) sums[i][j] = fma(x[i], y[j], sums[i][j]);
      }
    }
  }
  for (int i = 0; i < kSums; ++i) {
    const Int row = row0 + ty * kSums + i;
    const bool valid = groups == nullptr || groups[row] >= 0;
    for (int j = 0; j < 8; ++j) d[row * n + column0 + j / 2 * 32 + tx * 2 + j % 2] = valid ? sums[i][j] : 0;
  }
}

// A and B with their scales. `groups` may be null, for one group.
template <class Scales>
void quantised_inputs(const TaskCall& call, const std::int32_t* groups, Int group_count) {
  using Scale = typename Scales::Element;
  const std::string_view set = call.input_set;
  const Int m = call.axis("M"), n = call.axis("N"), k = call.axis("K");
  Shape shape = Shape::plain;
  if (set == "one-hot") shape = Shape::one_hot;
  if (set == "zero-rows") shape = Shape::zero_rows;
  if (set == "equal-rows") shape = Shape::equal_rows;
  if (set == "outliers") shape = Shape::outliers;
  if (set == "row-scales") shape = Shape::row_scales;
  if (set == "block-scales") shape = Shape::block_scales;
  if (set == "positive") shape = Shape::positive;
  const float deviation = hone::bell_scale(set == "large" ? 1e12f : set == "small" ? 1e-12f : 1.0f);
  const bool spoil = groups != nullptr && set == "padding-nan";
  fill_a<Scales><<<static_cast<unsigned>((m * k / 4 + 255) / 256), 256, 0, stream_of(call)>>>(
      call.data<std::uint32_t>("A"), call.data<Scale>("SFA"), groups, m, k, call.seed, call.call, deviation, shape, spoil);
  fill_b<Scales><<<static_cast<unsigned>(group_count * (n / 128) * (k / 128)), 512, 0, stream_of(call)>>>(
      call.data<std::uint32_t>("B"), call.data<Scale>("SFB"), n, k, call.seed, call.call, deviation, shape);
  check(call, cudaGetLastError(), "making the inputs");
}

template <int kRows, class Scales>
void reference(const TaskCall& call, const std::int32_t* groups) {
  using Scale = typename Scales::Element;
  const Int m = call.axis("M"), n = call.axis("N"), k = call.axis("K");
  const dim3 grid(static_cast<unsigned>(n / 128), static_cast<unsigned>(m / kRows));
  multiply<kRows, Scales><<<grid, 256, 0, stream_of(call)>>>(call.data<std::uint8_t>("A"), call.data<Scale>("SFA"), call.data<std::uint8_t>("B"),
                                                             call.data<Scale>("SFB"), groups, call.tensor("D").reference, m, n, k);
  check(call, cudaGetLastError(), "the oracle");
}

// Groups of rows one after the other, each padded to a multiple of kAlign; kAlign or half of it is a multiple of 16, up to 128.
template <int kAlign, class Scales>
struct GroupedTask {
  static void inputs(const TaskCall& call) {
    auto* groups = call.data<std::int32_t>("groups");
    const Int m = call.axis("M");
    write_groups<<<static_cast<unsigned>((m + 255) / 256), 256, 0, stream_of(call)>>>(split<kAlign>(call), groups, m);
    quantised_inputs<Scales>(call, groups, call.axis("G"));
  }
  static void oracle(const TaskCall& call) { reference<kAlign <= 128 ? kAlign : kAlign / 2, Scales>(call, call.data<std::int32_t>("groups")); }
  static void regions(const TaskCall& call) {
    const Int m = call.axis("M");
    std::vector<std::int32_t> groups(static_cast<std::size_t>(m));
    check(call, cudaMemcpyAsync(groups.data(), call.data<std::int32_t>("groups"), groups.size() * 4, cudaMemcpyDeviceToHost, stream_of(call)),
          "reading the groups");
    check(call, cudaStreamSynchronize(stream_of(call)), "reading the groups");
    for (Int begin = 0; begin < m;) {
      const std::int32_t group = groups[static_cast<std::size_t>(begin)];
      Int end = begin;
      while (end < m && groups[static_cast<std::size_t>(end)] == group) ++end;
      char name[32];
      std::snprintf(name, sizeof name, "group %d", group);
      if (group >= 0) call.add_region(call.sink, "D", name, begin, end);
      begin = end;
    }
  }
};

// M, N and K are multiples of 128.
template <class Scales>
struct DenseTask {
  static void inputs(const TaskCall& call) { quantised_inputs<Scales>(call, nullptr, 1); }
  static void oracle(const TaskCall& call) { reference<128, Scales>(call, nullptr); }
};

}  // namespace hone::fp8

#endif
