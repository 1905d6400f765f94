// Softmax of rows that only a cluster's registers hold. Clusters stay: each takes every so many-th row, and while a block
// works on its slice of one row, its slices of the next rows are on their way into shared memory. The plan defines
//   THREADS    of a block, a multiple of 32
//   LOADS      of four elements, of a thread
//   CLUSTER    blocks that share a row
//   STAGES     slices in shared memory
#include "part.cuh"

namespace ptx = hone::ptx;

__global__ void __launch_bounds__(THREADS) softmax_long(const float* x, float* y, int m, int n, int slice) {
  extern __shared__ __align__(128) float4 slices[];
  constexpr int kWarps = THREADS / 32;
  __shared__ Part parts[2][kWarps * CLUSTER];
  __shared__ __align__(8) std::uint64_t arrived[STAGES];
  const int rank = CLUSTER > 1 ? static_cast<int>(ptx::cluster_rank()) : 0, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
  const int begin = rank * slice, count = min(slice, n / kVector - begin);   // vectors
  const auto load = [&](int row, int stage) {
    if (threadIdx.x != 0 || row >= m) return;
    const std::uint32_t bytes = static_cast<std::uint32_t>(count) * 16, barrier = ptx::shared_address(&arrived[stage]);
    ptx::mbarrier_arrive_expect(barrier, bytes);
    ptx::load_bulk(ptx::shared_address(slices + stage * slice), x + static_cast<std::int64_t>(row) * n + begin * kVector, bytes, barrier);
  };
  if (threadIdx.x == 0) {
    for (std::uint64_t& each : arrived) ptx::mbarrier_init(ptx::shared_address(&each), 1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();   // every block has begun
  for (int stage = 0; stage < STAGES; ++stage) load(first + stage * step, stage);

  int stage = 0, turn = 0;
  std::uint32_t parity = 0;
  for (int row = first; row < m; row += step) {
    ptx::mbarrier_wait(ptx::shared_address(&arrived[stage]), parity);
    float4 values[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int at = i * THREADS + static_cast<int>(threadIdx.x);
      values[i] = at < count ? slices[stage * slice + at] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    }
    __syncthreads();
    load(row + STAGES * step, stage);

    Part part{-INFINITY, 0};
#pragma unroll
    for (const float4& each : values) part.largest = fmaxf(fmaxf(part.largest, fmaxf(each.x, each.y)), fmaxf(each.z, each.w));
    const float largest = part.largest == -INFINITY ? 0 : part.largest;   // a thread without elements
#pragma unroll
    for (float4& each : values) {
      each = make_float4(exponential(each.x - largest), exponential(each.y - largest), exponential(each.z - largest), exponential(each.w - largest));
      part.sum += (each.x + each.y) + (each.z + each.w);
    }
    part = join_warp(part);
    // Who writes here again has passed the next row's barrier, and so have all who read here.
    give_to_cluster<CLUSTER>(part, &parts[turn][rank * kWarps + warp], lane);
    ptx::cluster_sync();
    part = join_all<kWarps * CLUSTER>(parts[turn], lane);

    const float factor = exponential(largest - part.largest) / part.sum;
    float4* const to = reinterpret_cast<float4*>(y + static_cast<std::int64_t>(row) * n) + begin;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int at = i * THREADS + static_cast<int>(threadIdx.x);
      if (at < count) __stcs(to + at, make_float4(values[i].x * factor, values[i].y * factor, values[i].z * factor, values[i].w * factor));
    }
    turn ^= 1;
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
}
