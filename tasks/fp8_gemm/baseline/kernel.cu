// grouped_gemm_fp8's baseline without groups: tiles of 128 by 128, one a block. All threads take turns at fetching and multiplying: no roles, no sharing between
// blocks. A thread starts the copies of a step three steps ahead; two warpgroups multiply 64 rows each.
#include <hone/ptx.cuh>
#include <hone/types.h>

namespace ptx = hone::ptx;

constexpr int kTile = 128, kStages = 4, kBytes = kTile * 128;

__global__ void __launch_bounds__(256, 1)
    gemm(const __grid_constant__ hone::TensorMap map_a, const __grid_constant__ hone::TensorMap map_b, const float* scale_a,
         const float* scale_b, hone::bf16* d, int rows, int n, int k) {
  extern __shared__ unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[kStages];
  const std::uint32_t shared = (ptx::shared_address(shared_bytes) + 1023) & ~1023u, full = ptx::shared_address(barriers);
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile, steps = k / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) ptx::mbarrier_init(full + 8 * s, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  auto fetch = [&](int step) {
    const std::uint32_t barrier = full + 8 * (step % kStages), to = shared + step % kStages * 2 * kBytes;
    ptx::mbarrier_arrive_expect(barrier, 2 * kBytes);
    ptx::load_2d(to, &map_a, barrier, step * 128, row0);
    ptx::load_2d(to + kBytes, &map_b, barrier, step * 128, column0);
  };
  if (threadIdx.x == 0)
    for (int step = 0; step < min(kStages - 1, steps); ++step) fetch(step);

  const int half = __shfl_sync(~0u, threadIdx.x / 128, 0), warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const int row = row0 + half * 64 + warp * 16 + lane / 4;
  float total[64] = {}, product[64];
  for (int step = 0; step < steps; ++step) {
    const float column_scale = scale_b[column0 / 128 * steps + step];
    const float upper = scale_a[static_cast<std::int64_t>(step) * rows + row] * column_scale;
    const float lower = scale_a[static_cast<std::int64_t>(step) * rows + row + 8] * column_scale;
    ptx::mbarrier_wait(full + 8 * (step % kStages), step / kStages % 2);
    const std::uint32_t at = shared + step % kStages * 2 * kBytes;
    const std::uint64_t a = ptx::descriptor_128b(at + half * 64 * 128), b = ptx::descriptor_128b(at + kBytes);
    ptx::wgmma_hold(product);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) ptx::wgmma_e4m3(product, a + 2 * i, b + 2 * i, i != 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(product);
    __syncthreads();   // both halves are done with the stage before
    if (threadIdx.x == 0 && step + kStages - 1 < steps) fetch(step + kStages - 1);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      total[4 * j] += upper * product[4 * j];
      total[4 * j + 1] += upper * product[4 * j + 1];
      total[4 * j + 2] += lower * product[4 * j + 2];
      total[4 * j + 3] += lower * product[4 * j + 3];
    }
  }
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const std::int64_t at = static_cast<std::int64_t>(row) * n + column0 + 8 * j + lane % 4 * 2;
    *reinterpret_cast<std::uint32_t*>(d + at) = ptx::pack_bf16(total[4 * j], total[4 * j + 1]);
    *reinterpret_cast<std::uint32_t*>(d + at + 8 * n) = ptx::pack_bf16(total[4 * j + 2], total[4 * j + 3]);
  }
}
