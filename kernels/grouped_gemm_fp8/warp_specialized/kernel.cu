// Grouped FP8 GEMM for sm_90a; see NOTES.md. The plan defines
//   TILE_N (128, 192)   columns of D that a block makes at a time, 128 rows high
//   STAGES              of the ring of operand tiles
//   CLUSTER (1, 2)      blocks side by side along N that share each tile of A
//   BAND                tiles of rows that are walked together over all columns
//   SHAPE_N, SHAPE_K
#include <hone/ptx.cuh>

namespace ptx = hone::ptx;

namespace {

constexpr int kBlock = 128;                      // rows of a tile; granularity of groups, scales, and a step along K
constexpr int kSteps = SHAPE_K / kBlock;
constexpr int kScaleColumns = SHAPE_N / kBlock;
constexpr int kColumnTiles = (SHAPE_N + TILE_N * CLUSTER - 1) / (TILE_N * CLUSTER);   // of a whole cluster
constexpr int kChunks = TILE_N / 64;             // 64 columns share a scale of B, and are 128 bytes of D
constexpr int kColumnScales = TILE_N > kBlock ? 2 : 1;   // scales of B that a tile's columns touch

constexpr int kBytesPiece = 64 * 128;            // 64 rows of a step of A, or of 64 columns of D
constexpr int kBytesA = kBlock * 128, kBytesB = TILE_N * 128, kBytesD = kBlock * TILE_N * 2, kBytesScale = kBlock * 4;
constexpr int kOffsetB = STAGES * kBytesA, kOffsetD = kOffsetB + STAGES * kBytesB;
constexpr int kOffsetRows = kOffsetD + kBytesD, kOffsetColumns = kOffsetRows + STAGES * kBytesScale;
constexpr int kOffsetBarriers = kOffsetColumns + 2 * kColumnScales * kSteps * 4;   // a copy for each warpgroup

static_assert(kSteps <= 128, "a thread fetches the column scales of one step");
static_assert(TILE_N % 64 == 0 && SHAPE_K % kBlock == 0 && SHAPE_N % kBlock == 0);

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

// A tile of 128 rows, all of one group, from block `block` of 128 rows on.
struct Tile {
  int block, group;
};

// Walks this cluster's tiles: bands of rows over all columns, so that the tiles in work share operands in L2. It is one
// tile ahead of its user, who thus need not wait for the group of the next one.
class Walk {
 public:
  __device__ Walk(const int* groups, int blocks, int cluster, int clusters)
      : groups_(groups), row_tiles_(blocks), tile_(cluster), clusters_(clusters) {
    if (tile_ < row_tiles_ * kColumnTiles) locate();
  }

  // False at the end. Tiles of padding are passed over. `column_tile` counts tiles of a whole cluster.
  __device__ bool next(Tile& tile, int& column_tile) {
    while (tile_ < row_tiles_ * kColumnTiles) {
      column_tile = column_;
      tile = {row_, group_};
      tile_ += clusters_;
      if (tile_ < row_tiles_ * kColumnTiles) locate();
      if (tile.group >= 0) return true;
    }
    return false;
  }

 private:
  __device__ void locate() {
    const int band = tile_ / (BAND * kColumnTiles), inside = tile_ % (BAND * kColumnTiles);
    const int rows = min(BAND, row_tiles_ - band * BAND);
    row_ = band * BAND + inside % rows;
    column_ = inside / rows;
    group_ = __ldg(groups_ + row_ * kBlock);
  }

  const int* groups_;
  int row_tiles_, tile_, clusters_, row_ = 0, column_ = 0, group_ = -1;
};

// D = A * B^T over one step; `a` and `b` are descriptors.
__device__ __forceinline__ void multiply(float (&d)[TILE_N / 2], std::uint64_t at_a, std::uint64_t at_b) {
  ptx::wgmma_hold(d);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlock / 32; ++k) ptx::wgmma_e4m3(d, at_a + 2 * k, at_b + 2 * k, k != 0);
  ptx::wgmma_commit();
}

// total += scale of the row * scale of the column * product.
__device__ __forceinline__ void promote(float (&total)[TILE_N / 2], float (&product)[TILE_N / 2], const float (&rows)[2],
                                        const float (&columns)[kChunks]) {
  ptx::wgmma_hold(product);
#pragma unroll
  for (int j = 0; j < TILE_N / 8; ++j) {
    const float column = columns[j / 8];
    const float upper = rows[0] * column, lower = rows[1] * column;
    total[4 * j] += upper * product[4 * j];
    total[4 * j + 1] += upper * product[4 * j + 1];
    total[4 * j + 2] += lower * product[4 * j + 2];
    total[4 * j + 3] += lower * product[4 * j + 3];
  }
}

__device__ __forceinline__ float load_shared(std::uint32_t at) {
  float out;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(out) : "r"(at));
  return out;
}

}  // namespace

// A [M][K], B [G][N][K], D [M][N]; scales of A [K/128][M], of B [G][N/128][K/128]; groups [M]: group of each row or -1.
__global__ void __launch_bounds__(384, 1)
    grouped_gemm(const __grid_constant__ hone::TensorMap map_a, const __grid_constant__ hone::TensorMap map_b,
                 const __grid_constant__ hone::TensorMap map_d, const float* scale_a, const float* scale_b, const int* groups,
                 int rows) {
  extern __shared__ unsigned char shared_bytes[];
  const std::uint32_t shared = (ptx::shared_address(shared_bytes) + 1023) & ~1023u;
  const std::uint32_t full = shared + kOffsetBarriers, empty = full + 8 * STAGES;
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0), thread = threadIdx.x % 128;
  const std::uint32_t rank = CLUSTER > 1 ? ptx::cluster_rank() : 0;

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      ptx::mbarrier_init(full + 8 * s, 1);
      ptx::mbarrier_init(empty + 8 * s, 8 * CLUSTER);   // each consumer warp of each block that shares A
    }
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&map_a);
    ptx::prefetch_tensor_map(&map_b);
    ptx::prefetch_tensor_map(&map_d);
  }
  if (CLUSTER > 1) ptx::cluster_sync();
  else __syncthreads();

  Walk walk(groups, rows / kBlock, blockIdx.x / CLUSTER, gridDim.x / CLUSTER);
  Tile tile;
  int column_tile;
  Phases phases;

  if (warpgroup == 2) {
    ptx::registers_decrease<40>();
    if (thread < 32 && ptx::elect_one()) {
      while (walk.next(tile, column_tile)) {
        const int row = tile.block * kBlock, column = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N;
        for (int step = 0, stage = 0; step < kSteps; ++step, stage = stage + 1 == STAGES ? 0 : stage + 1) {
          const std::uint32_t barrier = full + 8 * stage;
          ptx::mbarrier_wait(empty + 8 * stage, phases.take(stage) ^ 1);
          ptx::mbarrier_arrive_expect(barrier, kBytesA + kBytesB + kBytesScale);
          const std::uint32_t a = shared + stage * kBytesA;
          if (CLUSTER == 1) {
            for (int half = 0; half < 2; ++half)
              ptx::load_2d(a + half * kBytesPiece, &map_a, barrier, step * kBlock, row + half * 64);
          } else {
            ptx::load_2d_multicast(a + rank * kBytesPiece, &map_a, barrier, step * kBlock, row + rank * 64, (1 << CLUSTER) - 1);
          }
          ptx::load_3d(shared + kOffsetB + stage * kBytesB, &map_b, barrier, step * kBlock, column, tile.group);
          ptx::load_bulk(shared + kOffsetRows + stage * kBytesScale, scale_a + static_cast<std::int64_t>(step) * rows + row,
                         kBytesScale, barrier);
        }
      }
    }
    __syncwarp();
  } else {
    ptx::registers_increase<232>();
    const int warp = thread / 32, lane = thread % 32;
    const std::uint32_t staging = shared + kOffsetD + warpgroup * (kBytesD / 2);
    auto release = [&](int stage) {
      if (CLUSTER == 1) {
        if (lane == 0) ptx::mbarrier_arrive(empty + 8 * stage);
      } else {
        if (lane < CLUSTER) ptx::mbarrier_arrive_remote(empty + 8 * stage, lane);
      }
    };

    const std::uint64_t first_a = ptx::descriptor_128b(shared + warpgroup * kBytesPiece);
    const std::uint64_t first_b = ptx::descriptor_128b(shared + kOffsetB);
    const std::uint32_t row_scales = shared + kOffsetRows + 4 * (warpgroup * 64 + warp * 16 + lane / 4);
    float product[TILE_N / 2];

    const std::uint32_t column_scales = shared + kOffsetColumns + warpgroup * kColumnScales * kSteps * 4;
    // Thread t fetches the scales of step t for the tile to come while the one before it is multiplied.
    float fetched[kColumnScales];
    auto fetch = [&](const Tile& of, int column_tile) {
      const int first = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N / kBlock;
#pragma unroll
      for (int i = 0; i < kColumnScales; ++i) {
        const int block = min(first + i, kScaleColumns - 1);   // a cluster's last tile may lie outside
        if (thread < kSteps) fetched[i] = __ldg(scale_b + (static_cast<std::int64_t>(of.group) * kScaleColumns + block) * kSteps + thread);
      }
    };

    bool more = walk.next(tile, column_tile);
    if (more) fetch(tile, column_tile);
    while (more) {
      const int column = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N;
      const bool early = TILE_N > kBlock && column % kBlock != 0;   // the second scale begins after 64 columns
#pragma unroll
      for (int i = 0; i < kColumnScales; ++i)
        if (thread < kSteps)
          asm volatile("st.shared.f32 [%0], %1;" ::"r"(column_scales + (i * kSteps + thread) * 4), "f"(fetched[i]) : "memory");
      ptx::named_barrier_sync(1 + warpgroup, 128);
      const int row = tile.block * kBlock + warpgroup * 64;
      more = walk.next(tile, column_tile);
      if (more) fetch(tile, column_tile);
      float total[TILE_N / 2];
#pragma unroll
      for (float& sum : total) sum = 0;

      auto do_step = [&](int step, int stage) {
        float of_columns[kChunks], scale[kColumnScales];
#pragma unroll
        for (int i = 0; i < kColumnScales; ++i) scale[i] = load_shared(column_scales + (i * kSteps + step) * 4);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) of_columns[c] = c >= 2 || (c == 1 && early) ? scale[kColumnScales - 1] : scale[0];
        ptx::mbarrier_wait(full + 8 * stage, phases.take(stage));
        const float of_rows[2] = {load_shared(row_scales + stage * kBytesScale), load_shared(row_scales + stage * kBytesScale + 32)};
        multiply(product, first_a + stage * kBytesA / 16, first_b + stage * kBytesB / 16);
        ptx::wgmma_wait<0>();
        release(stage);
        promote(total, product, of_rows, of_columns);
      };
      constexpr int kWhole = kSteps / STAGES * STAGES;
      for (int step = 0; step < kWhole; step += STAGES) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) do_step(step + stage, stage);
      }
#pragma unroll
      for (int stage = 0; stage < kSteps - kWhole; ++stage) do_step(kWhole + stage, stage);

      // D leaves through shared memory, 64 rows by 64 columns at a time, swizzled by 128 bytes.
      if (thread == 0) ptx::store_wait_read<0>();
      ptx::named_barrier_sync(1 + warpgroup, 128);
      const std::uint32_t line = staging + (warp * 16 + lane % 8 + lane / 8 % 2 * 8) * 128;
#pragma unroll
      for (int j = 0; j < TILE_N / 16; ++j) {   // 16 columns
        const float* const sums = total + 8 * j;
        const std::uint32_t sixteen = (j * 2 + lane / 16) % 8;   // which 16 bytes of the 128
        ptx::store_matrix_x4(line + j / 4 * kBytesPiece + (sixteen ^ (lane % 8)) * 16, ptx::pack_bf16(sums[0], sums[1]),
                             ptx::pack_bf16(sums[2], sums[3]), ptx::pack_bf16(sums[4], sums[5]), ptx::pack_bf16(sums[6], sums[7]));
      }
      ptx::fence_proxy_async();
      ptx::named_barrier_sync(1 + warpgroup, 128);
      if (thread == 0) {
        for (int c = 0; c < kChunks; ++c)
          if (column + c * 64 < SHAPE_N) ptx::store_2d(&map_d, staging + c * kBytesPiece, column + c * 64, row);
        ptx::store_commit();
      }
    }
    if (thread == 0) ptx::store_wait<0>();
    __syncwarp();
  }
  // No block leaves while another may still arrive at its barriers.
  if (CLUSTER > 1) ptx::cluster_sync();
}
