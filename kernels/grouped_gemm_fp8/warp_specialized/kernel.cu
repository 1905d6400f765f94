// Grouped FP8 GEMM for sm_90a; see NOTES.md. The plan defines
//   TILE_M (128, 256), TILE_N (128, 192)   of D, for two consumer warpgroups
//   STAGES                                  of the ring of operand tiles
//   CLUSTER (1, 2)                          blocks that share each tile of A
//   PARTS (1, 2)                            pieces of TILE_N: with 2, one piece is promoted while the other multiplies
//   ORDERED (0, 1)                          whether the warpgroups take turns at issuing wgmma
//   BAND                                    tiles of rows that are walked together over all columns
//   SHAPE_N, SHAPE_K
#include <hone/ptx.cuh>

namespace ptx = hone::ptx;

namespace {

constexpr int kBlock = 128;                      // granularity of groups, of both scales, and of a step along K
constexpr int kHeights = TILE_M / kBlock;        // blocks of rows in a tile
constexpr int kPartN = TILE_N / PARTS;
constexpr int kSteps = SHAPE_K / kBlock;
constexpr int kScaleColumns = SHAPE_N / kBlock;
constexpr int kColumnTiles = (SHAPE_N + TILE_N * CLUSTER - 1) / (TILE_N * CLUSTER);   // of a whole cluster
constexpr int kChunks = TILE_N / 64;             // 64 columns share a scale of B, and are 128 bytes of D

constexpr int kSubtileBytes = 64 * 128;          // 64 rows, of A's step or of 64 columns of D
constexpr int kBytesA = TILE_M * 128, kBytesB = TILE_N * 128, kBytesD = TILE_M * TILE_N * 2;
constexpr int kBytesScale = TILE_M * 4;
constexpr int kOffsetB = STAGES * kBytesA, kOffsetD = kOffsetB + STAGES * kBytesB;
constexpr int kOffsetScale = kOffsetD + kBytesD, kOffsetColumns = kOffsetScale + STAGES * kBytesScale;
constexpr int kColumnScales = TILE_N > kBlock ? 2 : 1;   // scales of B that a tile's columns touch
constexpr int kOffsetBarriers = kOffsetColumns + 2 * kColumnScales * kSteps * 4;   // a copy for each warpgroup

static_assert(kSteps <= 128, "a thread fetches the column scales of one step");
static_assert(TILE_N % 64 == 0 && SHAPE_K % kBlock == 0 && SHAPE_N % kBlock == 0);
static_assert(PARTS == 1 || TILE_M == 128, "two pieces in flight beside 256 rows do not fit the registers");

// The ring of stages starts anew with each pass, so that a step's stage is a constant of the unrolled loop; bit s is the
// parity of the phase that stage s completes next.
struct Phases {
  std::uint32_t bits = 0;
  __device__ std::uint32_t take(int stage) {
    const std::uint32_t parity = bits >> stage & 1;
    bits ^= 1u << stage;
    return parity;
  }
};

// Products of one group's rows: `height` blocks of 128 rows from block `block` on.
struct Pass {
  int block, height, group;
};

// Walks this cluster's tiles; the two blocks of a tile are one pass when they belong to one group.
class Walk {
 public:
  __device__ Walk(const int* groups, int blocks, int cluster, int clusters)
      : groups_(groups), blocks_(blocks), tile_(cluster), clusters_(clusters) {
    row_tiles_ = (blocks + kHeights - 1) / kHeights;
    if (tile_ < row_tiles_ * kColumnTiles) locate();
  }

  // False at the end.
  __device__ bool next(Pass& pass, int& column_tile) {
    while (tile_ < row_tiles_ * kColumnTiles) {
      column_tile = column_;
      pass = {row_ * kHeights + second_, 1, second_ ? group1_ : group0_};
      const bool whole = kHeights == 2 && !second_ && group0_ == group1_;
      if (whole) pass.height = 2;
      if (kHeights == 2 && !second_ && !whole) {
        second_ = true;
      } else {
        second_ = false;
        tile_ += clusters_;
        if (tile_ < row_tiles_ * kColumnTiles) locate();
      }
      if (pass.group >= 0) return true;
    }
    return false;
  }

 private:
  __device__ void locate() {
    const int band = tile_ / (BAND * kColumnTiles), inside = tile_ % (BAND * kColumnTiles);
    const int rows = min(BAND, row_tiles_ - band * BAND);
    row_ = band * BAND + inside % rows;
    column_ = inside / rows;
    group0_ = __ldg(groups_ + row_ * TILE_M);
    if (kHeights == 2) group1_ = row_ * 2 + 1 < blocks_ ? __ldg(groups_ + row_ * TILE_M + kBlock) : -1;
  }

  const int* groups_;
  int blocks_, tile_, clusters_, row_tiles_, row_ = 0, column_ = 0, group0_ = -1, group1_ = -1;
  bool second_ = false;
};

// D = A * B^T over one step; `a` and `b` are descriptors.
__device__ __forceinline__ void multiply(float (&d)[kPartN / 2], std::uint64_t at_a, std::uint64_t at_b) {
  ptx::wgmma_hold(d);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kBlock / 32; ++k) ptx::wgmma_e4m3(d, at_a + 2 * k, at_b + 2 * k, k != 0);
  ptx::wgmma_commit();
}

// total += scale of the row * scale of the column * product, for piece `part` of the columns.
template <int kPart>
__device__ __forceinline__ void promote(float (&total)[kPartN / 2], float (&product)[kPartN / 2], const float (&rows)[2],
                                        const float (&columns)[kChunks]) {
  ptx::wgmma_hold(product);
#pragma unroll
  for (int j = 0; j < kPartN / 8; ++j) {
    const float column = columns[(kPart * kPartN + 8 * j) / 64];
    const float upper = rows[0] * column, lower = rows[1] * column;
    total[4 * j] += upper * product[4 * j];
    total[4 * j + 1] += upper * product[4 * j + 1];
    total[4 * j + 2] += lower * product[4 * j + 2];
    total[4 * j + 3] += lower * product[4 * j + 3];
  }
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
  Pass pass;
  int column_tile;
  Phases phases;

  if (warpgroup == 2) {
    ptx::registers_decrease<40>();
    if (thread < 32 && ptx::elect_one()) {
      while (walk.next(pass, column_tile)) {
        const int row = pass.block * kBlock, column = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N;
        const std::uint32_t bytes = pass.height * (kBlock * 128 + kBlock * 4) + kBytesB;
        for (int step = 0, stage = 0; step < kSteps; ++step, stage = stage + 1 == STAGES ? 0 : stage + 1) {
          const std::uint32_t barrier = full + 8 * stage;
          ptx::mbarrier_wait(empty + 8 * stage, phases.take(stage) ^ 1);
          ptx::mbarrier_arrive_expect(barrier, bytes);
          const std::uint32_t a = shared + stage * kBytesA;
          if (CLUSTER == 1) {
            for (int i = 0; i < pass.height; ++i)
              for (int half = 0; half < 2; ++half)
                ptx::load_2d(a + (2 * i + half) * kSubtileBytes, &map_a, barrier, step * kBlock, row + i * kBlock + half * 64);
          } else {
            for (int i = 0; i < pass.height; ++i)
              ptx::load_2d_multicast(a + (2 * i + rank) * kSubtileBytes, &map_a, barrier, step * kBlock,
                                     row + i * kBlock + rank * 64, (1 << CLUSTER) - 1);
          }
          ptx::load_3d(shared + kOffsetB + stage * kBytesB, &map_b, barrier, step * kBlock, column, pass.group);
          ptx::load_bulk(shared + kOffsetScale + stage * kBytesScale, scale_a + static_cast<std::int64_t>(step) * rows + row,
                         pass.height * kBlock * 4, barrier);
        }
      }
    }
    __syncwarp();
  } else {
    ptx::registers_increase<232>();
    const int warp = thread / 32, lane = thread % 32;
    const std::uint32_t staging = shared + kOffsetD + warpgroup * (kBytesD / 2);
    // The other warpgroup's turn is opened by this one, the first by warpgroup 1.
    auto take_turn = [&] {
      if (ORDERED) ptx::named_barrier_sync(3 + warpgroup, 256);
    };
    auto pass_turn = [&] {
      if (ORDERED) ptx::named_barrier_arrive(4 - warpgroup, 256);
    };
    if (warpgroup == 1) pass_turn();
    auto release = [&](int stage) {
      if (CLUSTER == 1) {
        if (lane == 0) ptx::mbarrier_arrive(empty + 8 * stage);
      } else {
        if (lane < CLUSTER) ptx::mbarrier_arrive_remote(empty + 8 * stage, lane);
      }
    };

    const std::uint64_t first_a = ptx::descriptor_128b(shared + warpgroup * kSubtileBytes);
    const std::uint64_t first_b = ptx::descriptor_128b(shared + kOffsetB);
    const std::uint32_t row_scales = shared + kOffsetScale + 4 * (warpgroup * 64 + warp * 16 + lane / 4);
    float product[kPartN / 2];

    const std::uint32_t column_scales = shared + kOffsetColumns + warpgroup * kColumnScales * kSteps * 4;
    // Thread t fetches the scales of step t for the pass to come while the one before it is multiplied.
    float fetched[kColumnScales];
    auto fetch = [&](const Pass& of, int tile) {
      const int first = (tile * CLUSTER + static_cast<int>(rank)) * TILE_N / kBlock;
#pragma unroll
      for (int i = 0; i < kColumnScales; ++i)
        if (thread < kSteps)
          fetched[i] = __ldg(scale_b + (static_cast<std::int64_t>(of.group) * kScaleColumns + min(first + i, kScaleColumns - 1)) * kSteps + thread);
    };

    bool more = walk.next(pass, column_tile);
    if (more) fetch(pass, column_tile);
    while (more) {
      const int column = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N;
      const bool early = TILE_N > kBlock && column % kBlock != 0;   // the second scale begins after 64 columns
#pragma unroll
      for (int i = 0; i < kColumnScales; ++i)
        if (thread < kSteps) asm volatile("st.shared.f32 [%0], %1;" ::"r"(column_scales + (i * kSteps + thread) * 4), "f"(fetched[i]) : "memory");
      ptx::named_barrier_sync(1 + warpgroup, 128);
      const Pass now = pass;
      more = walk.next(pass, column_tile);
      if (more) fetch(pass, column_tile);
      float total[kHeights][PARTS][kPartN / 2];
#pragma unroll
      for (int h = 0; h < kHeights; ++h)
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
#pragma unroll
          for (int i = 0; i < kPartN / 2; ++i) total[h][p][i] = 0;

      auto load_row_scales = [&](int stage, float(&of_rows)[kHeights][2]) {
        const std::uint32_t at = row_scales + stage * kBytesScale;
#pragma unroll
        for (int h = 0; h < kHeights; ++h) {
          asm volatile("ld.shared.f32 %0, [%1];" : "=f"(of_rows[h][0]) : "r"(at + h * kBlock * 4));
          asm volatile("ld.shared.f32 %0, [%1];" : "=f"(of_rows[h][1]) : "r"(at + h * kBlock * 4 + 32));
        }
      };
      auto do_step = [&](int step, int stage) {
        float of_rows[kHeights][2], of_columns[kChunks];
        float scale[kColumnScales];
#pragma unroll
        for (int i = 0; i < kColumnScales; ++i)
          asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scale[i]) : "r"(column_scales + (i * kSteps + step) * 4));
#pragma unroll
        for (int c = 0; c < kChunks; ++c) of_columns[c] = c >= 2 || (c == 1 && early) ? scale[kColumnScales - 1] : scale[0];
        ptx::mbarrier_wait(full + 8 * stage, phases.take(stage));
        load_row_scales(stage, of_rows);
#pragma unroll
        for (int h = 0; h < kHeights; ++h) {
          if (h < now.height) {
            take_turn();
            multiply(product, first_a + (stage * kBytesA + h * 2 * kSubtileBytes) / 16, first_b + stage * kBytesB / 16);
            pass_turn();
            ptx::wgmma_wait<0>();
            if (h == now.height - 1) release(stage);
            promote<0>(total[h][0], product, of_rows[h], of_columns);
          }
        }
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
      const int matrix_row = lane % 8 + lane / 8 % 2 * 8;
#pragma unroll
      for (int h = 0; h < kHeights; ++h) {
        if (h < now.height) {
#pragma unroll
          for (int j = 0; j < TILE_N / 16; ++j) {   // 16 columns
            float(&sums)[kPartN / 2] = total[h][j * 16 / kPartN];
            const int i = j * 16 % kPartN / 2;
            const std::uint32_t sixteen = (j * 2 + lane / 16) % 8;   // which 16 bytes of the 128
            const std::uint32_t at =
                staging + (h * kChunks + j / 4) * kSubtileBytes + (warp * 16 + matrix_row) * 128 + ((sixteen ^ (lane % 8)) * 16);
            ptx::store_matrix_x4(at, ptx::pack_bf16(sums[i], sums[i + 1]), ptx::pack_bf16(sums[i + 2], sums[i + 3]),
                                 ptx::pack_bf16(sums[i + 4], sums[i + 5]), ptx::pack_bf16(sums[i + 6], sums[i + 7]));
          }
        }
      }
      ptx::fence_proxy_async();
      ptx::named_barrier_sync(1 + warpgroup, 128);
      if (thread == 0) {
        for (int h = 0; h < now.height; ++h)
          for (int c = 0; c < kChunks; ++c)
            if (column + c * 64 < SHAPE_N)
              ptx::store_2d(&map_d, staging + (h * kChunks + c) * kSubtileBytes, column + c * 64,
                            (now.block + h) * kBlock + warpgroup * 64);
        ptx::store_commit();
      }
    }
    if (thread == 0) ptx::store_wait<0>();
    __syncwarp();
  }
  // No block leaves while another may still arrive at its barriers.
  if (CLUSTER > 1) ptx::cluster_sync();
}
