// RMS normalisation of rows that only a cluster's registers hold. Clusters stay: each takes every so many-th row, keeps its
// columns' weights, and while a block works on its slice of one row, its slices of the next rows are on their way into
// shared memory. The plan defines
//   THREADS    of a block, a multiple of 32
//   LOADS      of eight elements, of a thread
//   CLUSTER    blocks that share a row
//   STAGES     slices in shared memory
#include "row.cuh"

namespace ptx = hone::ptx;

__global__ void __launch_bounds__(THREADS) rmsnorm_long(const hone::bf16* x, const hone::bf16* w, hone::bf16* y, int m, int n, int slice) {
  extern __shared__ __align__(128) uint4 slices[];
  constexpr int kWarps = THREADS / 32;
  __shared__ float parts[2][kWarps * CLUSTER];
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
  const auto unpack = [](const uint4& from, unsigned (&to)[4]) { to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w; };
  if (threadIdx.x == 0) {
    for (std::uint64_t& each : arrived) ptx::mbarrier_init(ptx::shared_address(&each), 1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();   // every block has begun
  for (int stage = 0; stage < STAGES; ++stage) load(first + stage * step, stage);

  unsigned scales[LOADS][4] = {}, values[LOADS][4];
#pragma unroll
  for (int i = 0; i < LOADS; ++i)
    if (const int at = i * THREADS + static_cast<int>(threadIdx.x); at < count)
      unpack(__ldg(reinterpret_cast<const uint4*>(w) + begin + at), scales[i]);

  int stage = 0, turn = 0;
  std::uint32_t parity = 0;
  for (int row = first; row < m; row += step) {
    ptx::mbarrier_wait(ptx::shared_address(&arrived[stage]), parity);
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int at = i * THREADS + static_cast<int>(threadIdx.x);
      unpack(at < count ? slices[stage * slice + at] : make_uint4(0, 0, 0, 0), values[i]);
    }
    __syncthreads();
    load(row + STAGES * step, stage);

    float sum = 0;
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum += element(values[i], j) * element(values[i], j);
    sum = sum_warp(sum);
    // Who writes here again has passed the next row's barrier, and so have all who read here.
    give_to_cluster<CLUSTER>(sum, &parts[turn][rank * kWarps + warp], lane);
    ptx::cluster_sync();
    const float factor = factor_of(sum_all<kWarps * CLUSTER>(parts[turn], lane), n);

    uint4* const to = reinterpret_cast<uint4*>(y + static_cast<std::int64_t>(row) * n) + begin;
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
      if (const int at = i * THREADS + static_cast<int>(threadIdx.x); at < count) __stcs(to + at, scaled(values[i], factor, scales[i]));
    turn ^= 1;
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
}
