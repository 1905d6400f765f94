// Softmax of rows held in registers: each element is read once and written once. The plan defines
//   THREADS    of a row in a block, a multiple of 32
//   ROWS       of a block; 1 unless THREADS is 32
//   LOADS      of four elements, of a thread
//   CLUSTER    blocks that share a row
//   ALIGNED    whether every row begins at a multiple of 16 bytes
#include "part.cuh"

namespace ptx = hone::ptx;

__global__ void __launch_bounds__(THREADS * ROWS) softmax(const float* x, float* y, int m, int n) {
  __shared__ Part parts[THREADS / 32 * CLUSTER];
  const int thread = threadIdx.x % THREADS, row = blockIdx.x / CLUSTER * ROWS + threadIdx.x / THREADS;
  const int rank = CLUSTER > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
  if (ROWS > 1 && row >= m) return;   // a whole warp
  if (CLUSTER > 1) ptx::cluster_arrive();   // says that this block has begun, before others write into it
  const float* const from = x + static_cast<std::int64_t>(row) * n;
  float* const to = y + static_cast<std::int64_t>(row) * n;

  // Vectors lie at multiples of 16 bytes; the first and the last of a row may reach over its ends.
  const int shift = ALIGNED ? 0 : static_cast<int>(static_cast<std::int64_t>(row) * n % kVector);
  const auto column_of = [&](int i) { return ((i * CLUSTER + rank) * THREADS + thread) * kVector - shift; };
  float values[LOADS * kVector];
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int column = column_of(i);
    float* const four = values + i * kVector;
    if (column >= 0 && column + kVector <= n) {
      const float4 loaded = __ldcs(reinterpret_cast<const float4*>(from + column));
      four[0] = loaded.x, four[1] = loaded.y, four[2] = loaded.z, four[3] = loaded.w;
    } else {
#pragma unroll
      for (int j = 0; j < kVector; ++j) four[j] = !ALIGNED && column + j >= 0 && column + j < n ? from[column + j] : -INFINITY;
    }
  }

  Part part{-INFINITY, 0};
#pragma unroll
  for (float value : values) part.largest = fmaxf(part.largest, value);
  const float largest = part.largest == -INFINITY ? 0 : part.largest;   // a thread without elements
#pragma unroll
  for (float& value : values) part.sum += value = exponential(value - largest);

  part = join_warp(part);
  if (THREADS > 32 || CLUSTER > 1) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr int kWarps = THREADS / 32;
    if (CLUSTER == 1) {
      if (lane == 0) parts[warp] = part;
      __syncthreads();
    } else {
      ptx::cluster_wait();
      if (lane < CLUSTER) ptx::store_remote(&parts[rank * kWarps + warp], lane, part.largest, part.sum);   // lane i to block i
      ptx::cluster_sync();
    }
    part = join_all<kWarps * CLUSTER>(parts, lane);
  }

  const float factor = exponential(largest - part.largest) / part.sum;
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int column = column_of(i);
    const float* const four = values + i * kVector;
    if (column >= 0 && column + kVector <= n) {
      __stcs(reinterpret_cast<float4*>(to + column), make_float4(four[0] * factor, four[1] * factor, four[2] * factor, four[3] * factor));
    } else if (!ALIGNED) {
#pragma unroll
      for (int j = 0; j < kVector; ++j)
        if (column + j >= 0 && column + j < n) to[column + j] = four[j] * factor;
    }
  }
}
