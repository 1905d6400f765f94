// RMS normalisation of rows that only a cluster's registers hold. A cluster takes the next row that nobody has taken, for as long as
// there are any; as soon as a block has its slice of one row in registers, its slice of the next row is on its way into
// shared memory, where its columns' weights stay. What a row waits for the other blocks of its cluster, further clusters on the same multiprocessors
// fill. `taken` counts rows, from 0. The plan defines
//   THREADS    of a block, a multiple of 32
//   BLOCKS     for whose registers a multiprocessor must have room
//   LOADS      of eight elements, of a thread
//   CLUSTER    blocks that share a row
#include "row.cuh"

namespace ptx = hone::ptx;

__global__ void __launch_bounds__(THREADS, BLOCKS) rmsnorm_long(const hone::bf16* x, const hone::bf16* w, hone::bf16* y, int* taken, int m, int n, int slice) {
  extern __shared__ __align__(128) uint4 loaded[];   // a slice of a row, one of the weights
  constexpr int kWarps = THREADS / 32;
  __shared__ float parts[2][kWarps * CLUSTER];
  __shared__ __align__(8) std::uint64_t arrival;
  __shared__ int first[2], later[2];
  const int rank = static_cast<int>(ptx::cluster_rank()), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool taker = rank == 0 && warp == 0;   // a warp that takes rows for the cluster
  const std::uint32_t barrier = ptx::shared_address(&arrival);
  const int begin = rank * slice, count = min(slice, n / kVector - begin);   // vectors
  const std::uint32_t bytes = static_cast<std::uint32_t>(count) * 16;
  const auto load = [&](int row, bool weights) {
    if (threadIdx.x != 0 || row >= m) return;
    ptx::mbarrier_arrive_expect(barrier, weights ? 2 * bytes : bytes);
    ptx::load_bulk(ptx::shared_address(loaded), x + static_cast<std::int64_t>(row) * n + begin * kVector, bytes, barrier);
    if (weights) ptx::load_bulk(ptx::shared_address(loaded + slice), w + begin * kVector, bytes, barrier);
  };
  const auto unpack = [](const uint4& from, unsigned (&to)[4]) { to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w; };
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
  load(row, true);

  unsigned values[LOADS][4];
  std::uint32_t turn = 0;
  for (; row < m; turn ^= 1) {
    int another = 0;
    if (taker && lane == 0) another = atomicAdd(taken, 1);
    ptx::mbarrier_wait(barrier, turn);
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int at = i * THREADS + static_cast<int>(threadIdx.x);
      unpack(at < count ? loaded[at] : make_uint4(0, 0, 0, 0), values[i]);
    }
    ptx::fence_proxy_async();   // what was read, before the copy writes there
    __syncthreads();
    load(next, false);

    float sum = 0;
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum += element(values[i], j) * element(values[i], j);
    sum = sum_warp(sum);
    // Lane i writes to block i of the cluster. Who writes here again has passed the next row's barrier, and so have all who read here.
    if (lane < CLUSTER) ptx::store_remote(&parts[turn][rank * kWarps + warp], lane, sum);
    if (taker) {
      const int its = __shfl_sync(~0u, another, 0);
      if (lane < CLUSTER) ptx::store_remote(&later[turn], lane, its);
    }
    ptx::cluster_sync();
    const float factor = factor_of(sum_all<kWarps * CLUSTER>(parts[turn], lane), n);

    uint4* const to = reinterpret_cast<uint4*>(y + static_cast<std::int64_t>(row) * n) + begin;
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
      if (const int at = i * THREADS + static_cast<int>(threadIdx.x); at < count) {
        unsigned scales[4];
        unpack(loaded[slice + at], scales);
        __stcs(to + at, scaled(values[i], factor, scales));
      }
    row = next;
    next = later[turn];
  }
}
