// Softmax of rows that only a cluster's registers hold. A cluster takes the next row that nobody has taken, for as long as
// there are any; as soon as a block has its slice of one row in registers, its slice of the next row is on its way into
// shared memory. What a row waits for the other blocks of its cluster, further clusters on the same multiprocessors
// fill. `taken` counts rows, from 0. The plan defines
//   THREADS    of a block, a multiple of 32
//   BLOCKS     for whose registers a multiprocessor must have room
//   LOADS      of four elements, of a thread
//   CLUSTER    blocks that share a row
#include "part.cuh"

namespace ptx = hone::ptx;

__global__ void __launch_bounds__(THREADS, BLOCKS) softmax_long(const float* x, float* y, int* taken, int m, int n, int slice) {
  extern __shared__ __align__(128) float4 loaded[];
  constexpr int kWarps = THREADS / 32;
  __shared__ Part parts[2][kWarps * CLUSTER];
  __shared__ __align__(8) std::uint64_t arrival;
  __shared__ int first[2], later[2];
  const int rank = static_cast<int>(ptx::cluster_rank()), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool taker = rank == 0 && warp == 0;   // a warp that takes rows for the cluster
  const std::uint32_t barrier = ptx::shared_address(&arrival);
  const int begin = rank * slice, count = min(slice, n / kVector - begin);   // vectors
  const auto load = [&](int row) {
    if (threadIdx.x != 0 || row >= m) return;
    const std::uint32_t bytes = static_cast<std::uint32_t>(count) * 16;
    ptx::mbarrier_arrive_expect(barrier, bytes);
    ptx::load_bulk(ptx::shared_address(loaded), x + static_cast<std::int64_t>(row) * n + begin * kVector, bytes, barrier);
  };
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();   // every block has begun
  if (taker) {
    const int two = __shfl_sync(~0u, lane == 0 ? atomicAdd(taken, 2) : 0, 0);
    if (lane < CLUSTER) {
      ptx::store_remote(&first[0], lane, two);
      ptx::store_remote(&first[1], lane, two + 1);
    }
  }
  ptx::cluster_sync();
  int row = first[0], next = first[1];
  load(row);

  std::uint32_t turn = 0;
  for (; row < m; turn ^= 1) {
    int another = 0;
    if (taker && lane == 0) another = atomicAdd(taken, 1);
    ptx::mbarrier_wait(barrier, turn);
    float4 values[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int at = i * THREADS + static_cast<int>(threadIdx.x);
      values[i] = at < count ? loaded[at] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    }
    ptx::fence_proxy_async();   // what was read, before the copy writes there
    __syncthreads();
    load(next);

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
    // Lane i writes to block i of the cluster. Who writes here again has passed the next row's barrier, and so have all who read here.
    if (lane < CLUSTER) ptx::store_remote(&parts[turn][rank * kWarps + warp], lane, part.largest, part.sum);
    if (taker) {
      const int its = __shfl_sync(~0u, another, 0);
      if (lane < CLUSTER) ptx::store_remote(&later[turn], lane, its);
    }
    ptx::cluster_sync();
    part = join_all<kWarps * CLUSTER>(parts[turn], lane);

    const float factor = exponential(largest - part.largest) / part.sum;
    float4* const to = reinterpret_cast<float4*>(y + static_cast<std::int64_t>(row) * n) + begin;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int at = i * THREADS + static_cast<int>(threadIdx.x);
      if (at < count) __stcs(to + at, make_float4(values[i].x * factor, values[i].y * factor, values[i].z * factor, values[i].w * factor));
    }
    row = next;
    next = later[turn];
  }
}
