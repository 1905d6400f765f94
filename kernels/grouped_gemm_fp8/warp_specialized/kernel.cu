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
constexpr int kOffsetScale = kOffsetD + kBytesD, kOffsetBarriers = kOffsetScale + STAGES * kBytesScale;

static_assert(TILE_N % 64 == 0 && SHAPE_K % kBlock == 0 && SHAPE_N % kBlock == 0);
static_assert(PARTS == 1 || TILE_M == 128, "two pieces in flight beside 256 rows do not fit the registers");

struct Ring {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
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

__device__ __forceinline__ void multiply(float (&d)[kPartN / 2], std::uint32_t a, std::uint32_t b) {
  const std::uint64_t at_a = ptx::descriptor_128b(a), at_b = ptx::descriptor_128b(b);
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
  Ring ring;

  if (warpgroup == 2) {
    ptx::registers_decrease<40>();
    if (thread < 32 && ptx::elect_one()) {
      while (walk.next(pass, column_tile)) {
        const int row = pass.block * kBlock, column = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N;
        const std::uint32_t bytes = pass.height * (kBlock * 128 + kBlock * 4) + kBytesB;
        for (int step = 0; step < kSteps; ++step, ring.advance()) {
          const std::uint32_t barrier = full + 8 * ring.stage;
          ptx::mbarrier_wait(empty + 8 * ring.stage, ring.parity ^ 1);
          ptx::mbarrier_arrive_expect(barrier, bytes);
          const std::uint32_t a = shared + ring.stage * kBytesA;
          if (CLUSTER == 1) {
            for (int i = 0; i < pass.height; ++i)
              for (int half = 0; half < 2; ++half)
                ptx::load_2d(a + (2 * i + half) * kSubtileBytes, &map_a, barrier, step * kBlock, row + i * kBlock + half * 64);
          } else {
            for (int i = 0; i < pass.height; ++i)
              ptx::load_2d_multicast(a + (2 * i + rank) * kSubtileBytes, &map_a, barrier, step * kBlock,
                                     row + i * kBlock + rank * 64, (1 << CLUSTER) - 1);
          }
          ptx::load_3d(shared + kOffsetB + ring.stage * kBytesB, &map_b, barrier, step * kBlock, column, pass.group);
          ptx::load_bulk(shared + kOffsetScale + ring.stage * kBytesScale, scale_a + static_cast<std::int64_t>(step) * rows + row,
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

    while (walk.next(pass, column_tile)) {
      const int column = (column_tile * CLUSTER + static_cast<int>(rank)) * TILE_N;
      // The scales of B that the tile's columns touch: a second one only when TILE_N is not a multiple of 128.
      const int first = min(column / kBlock, kScaleColumns - 1), last = min((column + TILE_N - 1) / kBlock, kScaleColumns - 1);
      const float* scales0 = scale_b + (static_cast<std::int64_t>(pass.group) * kScaleColumns + first) * kSteps;
      const float* scales1 = scale_b + (static_cast<std::int64_t>(pass.group) * kScaleColumns + last) * kSteps;
      const bool early = TILE_N > kBlock && column % kBlock != 0;   // the second scale begins after 64 columns
      float total[kHeights][PARTS][kPartN / 2];
#pragma unroll
      for (int h = 0; h < kHeights; ++h)
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
#pragma unroll
          for (int i = 0; i < kPartN / 2; ++i) total[h][p][i] = 0;

      float next0 = __ldg(scales0), next1 = TILE_N > kBlock ? __ldg(scales1) : next0;
      auto column_scales = [&](int step, float(&columns)[kChunks]) {
        const int after = min(step + 1, kSteps - 1);
        columns[0] = next0;
#pragma unroll
        for (int c = 1; c < kChunks; ++c) columns[c] = c >= 2 || early ? next1 : next0;
        next0 = __ldg(scales0 + after);
        next1 = TILE_N > kBlock ? __ldg(scales1 + after) : next0;
      };
      auto row_scales = [&](int h, float(&scales)[2]) {
        const std::uint32_t at =
            shared + kOffsetScale + ring.stage * kBytesScale + 4 * (h * kBlock + warpgroup * 64 + warp * 16 + lane / 4);
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scales[0]) : "r"(at));
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scales[1]) : "r"(at + 32));
      };

      if constexpr (PARTS == 1) {
        float product[kPartN / 2];
        for (int step = 0; step < kSteps; ++step, ring.advance()) {
          float columns[kChunks], scales[kHeights][2];
          column_scales(step, columns);
          ptx::mbarrier_wait(full + 8 * ring.stage, ring.parity);
#pragma unroll
          for (int h = 0; h < kHeights; ++h) row_scales(h, scales[h]);
          const std::uint32_t a = shared + ring.stage * kBytesA + warpgroup * kSubtileBytes;
          const std::uint32_t b = shared + kOffsetB + ring.stage * kBytesB;
#pragma unroll
          for (int h = 0; h < kHeights; ++h) {
            if (h < pass.height) {
              take_turn();
              multiply(product, a + h * 2 * kSubtileBytes, b);
              pass_turn();
              ptx::wgmma_wait<0>();
              if (h == pass.height - 1) release(ring.stage);
              promote<0>(total[h][0], product, scales[h], columns);
            }
          }
        }
      } else {
        float product0[kPartN / 2], product1[kPartN / 2];
#pragma unroll
        for (int i = 0; i < kPartN / 2; ++i) product1[i] = 0;
        float before_columns[kChunks] = {}, before_rows[2] = {};
        int before = 0;
        for (int step = 0; step < kSteps; ++step, ring.advance()) {
          float columns[kChunks], scales[2];
          column_scales(step, columns);
          ptx::mbarrier_wait(full + 8 * ring.stage, ring.parity);
          row_scales(0, scales);
          const std::uint32_t a = shared + ring.stage * kBytesA + warpgroup * kSubtileBytes;
          const std::uint32_t b = shared + kOffsetB + ring.stage * kBytesB;
          multiply(product0, a, b);
          ptx::wgmma_wait<1>();
          if (step > 0) release(before);
          promote<PARTS - 1>(total[0][PARTS - 1], product1, before_rows, before_columns);
          multiply(product1, a, b + kPartN * 128);
          ptx::wgmma_wait<1>();
          promote<0>(total[0][0], product0, scales, columns);
#pragma unroll
          for (int c = 0; c < kChunks; ++c) before_columns[c] = columns[c];
          before_rows[0] = scales[0], before_rows[1] = scales[1];
          before = ring.stage;
        }
        ptx::wgmma_wait<0>();
        release(before);
        promote<PARTS - 1>(total[0][PARTS - 1], product1, before_rows, before_columns);
      }

      // D leaves through shared memory, 64 rows by 64 columns at a time, swizzled by 128 bytes.
      if (thread == 0) ptx::store_wait_read<0>();
      ptx::named_barrier_sync(1 + warpgroup, 128);
      const int matrix_row = lane % 8 + lane / 8 % 2 * 8;
#pragma unroll
      for (int h = 0; h < kHeights; ++h) {
        if (h < pass.height) {
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
        for (int h = 0; h < pass.height; ++h)
          for (int c = 0; c < kChunks; ++c)
            if (column + c * 64 < SHAPE_N)
              ptx::store_2d(&map_d, staging + (h * kChunks + c) * kSubtileBytes, column + c * 64,
                            (pass.block + h) * kBlock + warpgroup * 64);
        ptx::store_commit();
      }
    }
    if (thread == 0) ptx::store_wait<0>();
    __syncwarp();
  }
  // No block leaves while another may still arrive at its barriers.
  if (CLUSTER > 1) ptx::cluster_sync();
}
