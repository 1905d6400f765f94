// RMS normalisation of rows held in registers: each element is read once and written once. The plan defines
//   THREADS    of a row in a block, a multiple of 32
//   ROWS       of a block; 1 unless THREADS is 32
//   VECTOR     BF16 elements a load: 8, or 1 where rows are not aligned to 16 bytes
//   LOADS      of a thread
//   CLUSTER    blocks that share a row
#include <hone/ptx.cuh>
#include <hone/types.h>

namespace ptx = hone::ptx;

// VECTOR elements as they lie in memory, and as floats.
template <int kVector>
struct Vector;
template <>
struct Vector<1> {
  using Type = unsigned short;
  __device__ static float get(Type word, int) { return __uint_as_float(static_cast<unsigned>(word) << 16); }
  __device__ static void put(Type& word, int, float low, float) { word = static_cast<Type>(ptx::pack_bf16(low, 0)); }
};
template <>
struct Vector<8> {
  using Type = uint4;
  __device__ static unsigned& word(uint4& all, int i) { return i == 0 ? all.x : i == 1 ? all.y : i == 2 ? all.z : all.w; }
  __device__ static float get(Type all, int i) {
    const unsigned pair = word(all, i / 2);
    return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  }
  __device__ static void put(Type& all, int i, float low, float high) { word(all, i / 2) = ptx::pack_bf16(low, high); }
};

namespace {

__device__ __forceinline__ float sum_warp(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

}  // namespace

__global__ void __launch_bounds__(THREADS * ROWS) rmsnorm(const hone::bf16* x, const hone::bf16* w, hone::bf16* y, int m, int n) {
  using V = Vector<VECTOR>;
  using Type = typename V::Type;
  __shared__ float parts[THREADS / 32 * CLUSTER];
  const int thread = threadIdx.x % THREADS, row = blockIdx.x / CLUSTER * ROWS + threadIdx.x / THREADS;
  const int rank = CLUSTER > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
  if (ROWS > 1 && row >= m) return;   // a whole warp
  if (CLUSTER > 1) ptx::cluster_arrive();   // says that this block has begun, before others write into it
  const auto* const from = reinterpret_cast<const Type*>(x + static_cast<std::int64_t>(row) * n);
  const auto* const weights = reinterpret_cast<const Type*>(w);
  auto* const to = reinterpret_cast<Type*>(y + static_cast<std::int64_t>(row) * n);

  Type values[LOADS];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int at = (i * CLUSTER + rank) * THREADS + thread;
    values[i] = Type{};
    if (at * VECTOR < n) values[i] = __ldcs(from + at);
  }
#pragma unroll
  for (int i = 0; i < LOADS; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum += V::get(values[i], j) * V::get(values[i], j);

  sum = sum_warp(sum);
  if (THREADS > 32 || CLUSTER > 1) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr int kWarps = THREADS / 32;
    if (CLUSTER == 1) {
      if (lane == 0) parts[warp] = sum;
      __syncthreads();
    } else {
      ptx::cluster_wait();
      // Lane i writes to block i of the cluster, at this warp's place in the row.
      if (lane < CLUSTER) {
        const std::uint32_t at = ptx::shared_address(&parts[rank * kWarps + warp]);
        asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; st.shared::cluster.f32 [remote], %2; }" ::"r"(at),
                     "r"(lane), "f"(sum) : "memory");
      }
      ptx::cluster_sync();
    }
    sum = 0;
#pragma unroll
    for (int i = 0; i < (kWarps * CLUSTER + 31) / 32; ++i)
      if (i * 32 + lane < kWarps * CLUSTER) sum += parts[i * 32 + lane];
    sum = sum_warp(sum);
  }

  const float factor = 1.0f / sqrtf(sum / static_cast<float>(n) + 1e-6f);
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int at = (i * CLUSTER + rank) * THREADS + thread;
    if (at * VECTOR >= n) continue;
    const Type scale = __ldg(weights + at);
    Type out;
#pragma unroll
    for (int j = 0; j < VECTOR; j += 2) {
      const float low = V::get(values[i], j) * factor * V::get(scale, j);
      const float high = VECTOR > 1 ? V::get(values[i], j + 1) * factor * V::get(scale, j + 1) : 0;
      V::put(out, j, low, high);
    }
    __stcs(to + at, out);
  }
}
