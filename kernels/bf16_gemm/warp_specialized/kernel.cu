// BF16 and FP16 GEMM for sm_90a; see NOTES.md. The plan defines
//   HALF                1: the operands and D are FP16, else BF16
//   TILE_N (128, 256)   columns of D that a block makes at a time, 128 rows high
//   STAGES              of the ring of operand tiles
//   CLUSTER (1, 2)      blocks side by side along M that share each tile of B
//   BAND                clusters' rows that are walked together over all columns
//   SHAPE_N, SHAPE_K
#include <hone/ptx.cuh>

namespace ptx = hone::ptx;

namespace {

constexpr int kRows = 128, kDepth = 64;          // of a tile; a step along K is 128 bytes
constexpr int kSteps = (SHAPE_K + kDepth - 1) / kDepth;
constexpr int kColumnTiles = (SHAPE_N + TILE_N - 1) / TILE_N;
constexpr int kConsumers = 2;                    // warpgroups, 64 rows each
constexpr int kPieces = 2;                       // of 64 columns, that a warpgroup sends off at a time

constexpr int kBytesA = kRows * 128, kBytesB = TILE_N * 128;
constexpr int kBytesPiece = 64 * 128;            // 64 rows by 64 columns of D
constexpr int kOffsetB = STAGES * kBytesA, kOffsetD = kOffsetB + STAGES * kBytesB;
constexpr int kOffsetBarriers = kOffsetD + kConsumers * kPieces * kBytesPiece;

__device__ __forceinline__ void multiply(float (&sums)[TILE_N / 2], std::uint64_t a, std::uint64_t b, bool add) {
  if constexpr (HALF) ptx::wgmma_f16(sums, a, b, add);
  else ptx::wgmma_bf16(sums, a, b, add);
}
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  if constexpr (HALF) return ptx::pack_f16(low, high);
  else return ptx::pack_bf16(low, high);
}

// The ring of stages starts anew with each tile, so that a step's stage is a constant of the unrolled loop; bit s is the
// parity of the phase that stage s completes next.
struct Phases {
  std::uint32_t bits = 0;
  __device__ std::uint32_t take(int stage) {
    const std::uint32_t parity = bits >> stage & 1;
    bits ^= 1u << stage;
    return parity;
  }
};

// First row and column of the cluster's tile `at`; rows first, in bands.
__device__ void locate(int at, int row_tiles, int& row, int& column) {
  const int band = at / (BAND * kColumnTiles), inside = at % (BAND * kColumnTiles), high = min(BAND, row_tiles - band * BAND);
  row = (band * BAND + inside % high) * CLUSTER * kRows;
  column = inside / high * TILE_N;
}

}  // namespace

// A [M][K], B [N][K], D [M][N].
__global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ hone::TensorMap map_a, const __grid_constant__ hone::TensorMap map_b,
         const __grid_constant__ hone::TensorMap map_d, int rows) {
  extern __shared__ unsigned char shared_bytes[];
  const std::uint32_t shared = (ptx::shared_address(shared_bytes) + 1023) & ~1023u;
  const std::uint32_t full = shared + kOffsetBarriers, empty = full + 8 * STAGES;
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0), thread = threadIdx.x % 128;
  const int rank = CLUSTER > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      ptx::mbarrier_init(full + 8 * s, 1);
      ptx::mbarrier_init(empty + 8 * s, 4 * kConsumers * CLUSTER);   // each consumer warp of each block of the cluster
    }
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&map_a);
    ptx::prefetch_tensor_map(&map_b);
    ptx::prefetch_tensor_map(&map_d);
  }
  if (CLUSTER > 1) ptx::cluster_sync();
  else __syncthreads();

  const int row_tiles = (rows + kRows * CLUSTER - 1) / (kRows * CLUSTER), first_tile = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER;
  Phases phases;

  if (warpgroup == kConsumers) {
    ptx::registers_decrease<40>();
    if (thread < 32 && ptx::elect_one()) {
      for (int at = first_tile; at < row_tiles * kColumnTiles; at += stride) {
        int row, column;
        locate(at, row_tiles, row, column);
        for (int step = 0, stage = 0; step < kSteps; ++step, stage = stage + 1 == STAGES ? 0 : stage + 1) {
          const std::uint32_t barrier = full + 8 * stage, b = shared + kOffsetB + stage * kBytesB + rank * (kBytesB / CLUSTER);
          ptx::mbarrier_wait(empty + 8 * stage, phases.take(stage) ^ 1);
          ptx::mbarrier_arrive_expect(barrier, kBytesA + kBytesB);
          ptx::load_2d(shared + stage * kBytesA, &map_a, barrier, step * kDepth, row + rank * kRows);
          if (CLUSTER > 1) ptx::load_2d_multicast(b, &map_b, barrier, step * kDepth, column + rank * (TILE_N / CLUSTER), (1 << CLUSTER) - 1);
          else ptx::load_2d(b, &map_b, barrier, step * kDepth, column);
        }
      }
    }
    __syncwarp();
  } else {
    ptx::registers_increase<232>();
    const int warp = thread / 32, lane = thread % 32;
    const std::uint32_t staging = shared + kOffsetD + warpgroup * kPieces * kBytesPiece;
    const std::uint32_t line = staging + (warp * 16 + lane % 8 + lane / 8 % 2 * 8) * 128;
    const std::uint64_t first_a = ptx::descriptor_128b(shared + warpgroup * 64 * 128);
    const std::uint64_t first_b = ptx::descriptor_128b(shared + kOffsetB);
    auto release = [&](int stage) {
      if (CLUSTER == 1 && lane == 0) ptx::mbarrier_arrive(empty + 8 * stage);
      if (CLUSTER > 1 && lane < CLUSTER) ptx::mbarrier_arrive_remote(empty + 8 * stage, lane);
    };

    for (int at = first_tile; at < row_tiles * kColumnTiles; at += stride) {
      int row, column;
      locate(at, row_tiles, row, column);
      row += rank * kRows + warpgroup * 64;
      float sums[TILE_N / 2];

      // One step stays in flight while the next one's operands are waited for.
      auto do_step = [&](int step, int stage) {
        ptx::mbarrier_wait(full + 8 * stage, phases.take(stage));
        ptx::wgmma_hold(sums);
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kDepth / 16; ++k)
          multiply(sums, first_a + stage * kBytesA / 16 + 2 * k, first_b + stage * kBytesB / 16 + 2 * k, step > 0 || k != 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();
        if (step > 0) release(stage == 0 ? STAGES - 1 : stage - 1);
      };
      constexpr int kWhole = kSteps / STAGES * STAGES;
      for (int step = 0; step < kWhole; step += STAGES) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) do_step(step + stage, stage);
      }
#pragma unroll
      for (int stage = 0; stage < kSteps - kWhole; ++stage) do_step(kWhole + stage, stage);
      ptx::wgmma_wait<0>();
      ptx::wgmma_hold(sums);
      release((kSteps - 1) % STAGES);

      // D leaves through shared memory in pieces of 64 rows by 64 columns, swizzled by 128 bytes.
#pragma unroll
      for (int piece = 0; piece < TILE_N / 64; piece += kPieces) {
        if (thread == 0) ptx::store_wait_read<0>();
        ptx::named_barrier_sync(1 + warpgroup, 128);
#pragma unroll
        for (int j = 0; j < kPieces * 4; ++j) {   // 16 columns
          const float* const d = sums + piece * 32 + 8 * j;
          const std::uint32_t sixteen = (j * 2 + lane / 16) % 8;   // which 16 bytes of the 128
          ptx::store_matrix_x4(line + j / 4 * kBytesPiece + (sixteen ^ (lane % 8)) * 16, pack(d[0], d[1]),
                               pack(d[2], d[3]), pack(d[4], d[5]), pack(d[6], d[7]));
        }
        ptx::fence_proxy_async();
        ptx::named_barrier_sync(1 + warpgroup, 128);
        if (thread == 0) {
          for (int i = 0; i < kPieces; ++i)
            if (row < rows && column + (piece + i) * 64 < SHAPE_N)
              ptx::store_2d(&map_d, staging + i * kBytesPiece, column + (piece + i) * 64, row);
          ptx::store_commit();
        }
      }
    }
    if (thread == 0) ptx::store_wait<0>();
    __syncwarp();
  }
  // No block leaves while another may still arrive at its barriers.
  if (CLUSTER > 1) ptx::cluster_sync();
}
