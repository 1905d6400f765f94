// RMS normalisation of rows held in registers: each element is read once and written once. The plan defines
//   THREADS    of a row in a block, a multiple of 32
//   ROWS       of a block; 1 unless THREADS is 32
//   LOADS      of eight elements, of a thread
//   CLUSTER    blocks that share a row
//   ALIGNED    whether every row begins at a multiple of 16 bytes
#include "row.cuh"

namespace ptx = hone::ptx;

__global__ void __launch_bounds__(THREADS * ROWS) rmsnorm(const hone::bf16* x, const hone::bf16* w, hone::bf16* y, int m, int n) {
  __shared__ float parts[THREADS / 32 * CLUSTER];
  const int thread = threadIdx.x % THREADS, row = blockIdx.x / CLUSTER * ROWS + threadIdx.x / THREADS;
  const int rank = CLUSTER > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
  if (ROWS > 1 && row >= m) return;   // a whole warp
  if (CLUSTER > 1) ptx::cluster_arrive();   // says that this block has begun, before others write into it
  const hone::bf16* const from = x + static_cast<std::int64_t>(row) * n;
  hone::bf16* const to = y + static_cast<std::int64_t>(row) * n;

  // Vectors lie at multiples of 16 bytes; the first and the last of a row may reach over its ends.
  const int shift = ALIGNED ? 0 : static_cast<int>(static_cast<std::int64_t>(row) * n % kVector);
  const auto column_of = [&](int i) { return ((i * CLUSTER + rank) * THREADS + thread) * kVector - shift; };
  unsigned values[LOADS][4];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int column = column_of(i);
    if (column >= 0 && column + kVector <= n) {
      const uint4 loaded = __ldcs(reinterpret_cast<const uint4*>(from + column));
      values[i][0] = loaded.x, values[i][1] = loaded.y, values[i][2] = loaded.z, values[i][3] = loaded.w;
    } else {
#pragma unroll
      for (unsigned& word : values[i]) word = 0;
      if (!ALIGNED) {
#pragma unroll
        for (int j = 0; j < kVector; ++j)
          if (column + j >= 0 && column + j < n) values[i][j / 2] |= static_cast<unsigned>(from[column + j].bits) << (j % 2 * 16);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < LOADS; ++i)
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += element(values[i], j) * element(values[i], j);

  sum = sum_warp(sum);
  if (THREADS > 32 || CLUSTER > 1) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr int kWarps = THREADS / 32;
    if (CLUSTER == 1) {
      if (lane == 0) parts[warp] = sum;
      __syncthreads();
    } else {
      ptx::cluster_wait();
      if (lane < CLUSTER) ptx::store_remote(&parts[rank * kWarps + warp], lane, sum);   // lane i to block i
      ptx::cluster_sync();
    }
    sum = sum_all<kWarps * CLUSTER>(parts, lane);
  }

  const float factor = factor_of(sum, n);
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int column = column_of(i);
    if (column + kVector <= 0 || column >= n) continue;
    unsigned scales[4] = {};
    if (ALIGNED) {
      const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(w + column));
      scales[0] = loaded.x, scales[1] = loaded.y, scales[2] = loaded.z, scales[3] = loaded.w;
    } else {
#pragma unroll
      for (int j = 0; j < kVector; ++j)
        if (column + j >= 0 && column + j < n) scales[j / 2] |= static_cast<unsigned>(w[column + j].bits) << (j % 2 * 16);
    }
    const uint4 out = scaled(values[i], factor, scales);
    if (column >= 0 && column + kVector <= n) {
      __stcs(reinterpret_cast<uint4*>(to + column), out);
    } else if (!ALIGNED) {
      const unsigned words[4] = {out.x, out.y, out.z, out.w};
#pragma unroll
      for (int j = 0; j < kVector; ++j)
        if (column + j >= 0 && column + j < n) to[column + j] = {static_cast<std::uint16_t>(words[j / 2] >> (j % 2 * 16))};
    }
  }
}
