// Grouped FP8 GEMM for sm_90a; see NOTES.md. The plan defines
//   TILE_N (128, 192)   columns of D that a block makes at a time, 128 rows high
//   STAGES              of the ring of operand tiles
//   CLUSTER (1, 2)      blocks side by side along M that share each tile of B
//   BAND                clusters' rows that are walked together over all columns
//   SHAPE_N, SHAPE_K
#include <hone/ptx.cuh>

namespace ptx = hone::ptx;

namespace {

constexpr int kBlock = 128;                      // granularity of groups, of the scales, and of a step along K
constexpr int kSteps = SHAPE_K / kBlock;
constexpr int kScaleColumns = SHAPE_N / kBlock;
constexpr int kFullTiles = SHAPE_N / TILE_N, kLastColumns = SHAPE_N % TILE_N;   // a last, narrow tile where N leaves a rest
constexpr int kChunks = TILE_N / 64;             // 64 columns share a scale of B, and are 128 bytes of D
constexpr int kColumnScales = TILE_N > kBlock ? 2 : 1;                // scales of B that a tile's columns touch
constexpr int kConsumers = 2;                    // warpgroups, 64 rows each

constexpr int kBytesA = kBlock * 128, kBytesB = TILE_N * 128, kBytesScale = kBlock * 4;
constexpr int kBytesPiece = 64 * 128;            // 64 rows by 64 columns of D
constexpr int kOffsetB = STAGES * kBytesA, kOffsetD = kOffsetB + STAGES * kBytesB;
constexpr int kOffsetRows = kOffsetD + kConsumers * kChunks * kBytesPiece, kOffsetColumns = kOffsetRows + STAGES * kBytesScale;
constexpr int kOffsetBarriers = kOffsetColumns + kConsumers * kColumnScales * kSteps * 4;   // a copy for each warpgroup

static_assert(kSteps >= STAGES, "the walk looks ahead after the first turn of the ring");
static_assert(kSteps <= 128, "a thread fetches the column scales of one step");
static_assert(TILE_N % 64 == 0 && SHAPE_N >= TILE_N && SHAPE_K % kBlock == 0 && SHAPE_N % kBlock == 0);

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

// What a block multiplies next. `shared`: the whole cluster works on one group, so B is fetched once for all its blocks.
struct Tile {
  int row, column, group;
  bool shared;
};

// The tiles of this block's cluster, in the order in which it makes them: bands of rows over the columns, so that the
// tiles in work share operands in L2, and the narrow tiles of all rows at the end, where they fill the last turn.
class Walk {
 public:
  __device__ Walk(const int* groups, int rows, int rank)
      : groups_(groups), rows_(rows), rank_(rank), row_tiles_((rows / kBlock + CLUSTER - 1) / CLUSTER), at_(blockIdx.x / CLUSTER) {}

  // Starts to fetch the groups of the next tile, so that `take` need not wait for them.
  __device__ void look_ahead() {
    if (at_ >= tiles()) return;
    const int band = at_ / (BAND * kFullTiles), inside = at_ % (BAND * kFullTiles), narrow = at_ - row_tiles_ * kFullTiles;
    const int high = min(BAND, row_tiles_ - band * BAND);
    row_ = (narrow >= 0 ? narrow : band * BAND + inside % high) * CLUSTER * kBlock;
    column_ = narrow >= 0 ? kFullTiles * TILE_N : inside / high * TILE_N;
#pragma unroll
    for (int i = 0; i < CLUSTER; ++i) group_[i] = row_ + i * kBlock < rows_ ? __ldg(groups_ + row_ + i * kBlock) : -1;
  }

  // The tile looked ahead to, or a later one where that is all padding; false at the end. All blocks of a cluster get a
  // tile or none does: they pace one another's rings.
  __device__ bool take(Tile& tile) {
    while (at_ < tiles()) {
      at_ += gridDim.x / CLUSTER;
      const int any = CLUSTER > 1 ? max(group_[0], group_[CLUSTER - 1]) : group_[0];
      if (any < 0) {
        look_ahead();
        continue;
      }
      // A block of padding beside another keeps it company; its results are not looked at.
      const int first = group_[0] < 0 ? any : group_[0], last = group_[CLUSTER - 1] < 0 ? any : group_[CLUSTER - 1];
      tile = {row_ + rank_ * kBlock, column_, rank_ == 0 ? first : last, first == last};
      return true;
    }
    return false;
  }

 private:
  __device__ int tiles() const { return row_tiles_ * (kFullTiles + (kLastColumns > 0)); }

  const int* groups_;
  int rows_, rank_, row_tiles_, at_, row_ = 0, column_ = 0, group_[CLUSTER] = {};
};

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

  Walk walk(groups, rows, rank);
  Tile tile;
  Phases phases;

  if (warpgroup == kConsumers) {
    ptx::registers_decrease<40>();
    if (thread < 32 && ptx::elect_one()) {
      for (walk.look_ahead(); walk.take(tile); ) {
        walk.look_ahead();
        const int scale_row = min(tile.row, rows - kBlock);   // the last cluster's second block may lie outside
        for (int step = 0, stage = 0; step < kSteps; ++step, stage = stage + 1 == STAGES ? 0 : stage + 1) {
          const std::uint32_t barrier = full + 8 * stage, b = shared + kOffsetB + stage * kBytesB;
          ptx::mbarrier_wait(empty + 8 * stage, phases.take(stage) ^ 1);
          ptx::mbarrier_arrive_expect(barrier, kBytesA + kBytesB + kBytesScale);
          ptx::load_2d(shared + stage * kBytesA, &map_a, barrier, step * kBlock, tile.row);
          if (CLUSTER > 1 && tile.shared) {
            ptx::load_3d_multicast(b + rank * (kBytesB / CLUSTER), &map_b, barrier, step * kBlock,
                                   tile.column + rank * (TILE_N / CLUSTER), tile.group, (1 << CLUSTER) - 1);
          } else {
#pragma unroll
            for (int i = 0; i < CLUSTER; ++i)
              ptx::load_3d(b + i * (kBytesB / CLUSTER), &map_b, barrier, step * kBlock, tile.column + i * (TILE_N / CLUSTER), tile.group);
          }
          ptx::load_bulk(shared + kOffsetRows + stage * kBytesScale, scale_a + static_cast<std::int64_t>(step) * rows + scale_row,
                         kBytesScale, barrier);
        }
      }
    }
    __syncwarp();
  } else {
    ptx::registers_increase<232>();
    const int warp = thread / 32, lane = thread % 32;
    const std::uint32_t row_scales = shared + kOffsetRows + 4 * (warpgroup * 64 + warp * 16 + lane / 4);
    const std::uint32_t column_scales = shared + kOffsetColumns + warpgroup * kColumnScales * kSteps * 4;
    const std::uint32_t staging = shared + kOffsetD + warpgroup * kChunks * kBytesPiece;
    const std::uint64_t first_a = ptx::descriptor_128b(shared + warpgroup * 64 * 128);
    const std::uint64_t first_b = ptx::descriptor_128b(shared + kOffsetB);

    // Thread t fetches the scales of step t for the tile to come while the one before it is multiplied.
    float fetched[kColumnScales];
    auto fetch = [&](const Tile& of) {
#pragma unroll
      for (int i = 0; i < kColumnScales; ++i) {
        const int block = min(of.column / kBlock + i, kScaleColumns - 1);
        if (thread < kSteps) fetched[i] = __ldg(scale_b + (static_cast<std::int64_t>(of.group) * kScaleColumns + block) * kSteps + thread);
      }
    };

    // Multiplies the first kColumns columns of a tile and sends them off. Meanwhile the walk goes on to the next one.
    bool more = false;
    auto make = [&]<int kColumns>(const Tile& now) {
      const bool early = now.column % kBlock != 0;   // the second scale begins after 64 columns
      float total[kColumns / 2], product[kColumns / 2];
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) total[i] = 0;

      auto do_step = [&](int step, int stage) {
        float scale[kColumnScales], columns[kChunks];
#pragma unroll
        for (int i = 0; i < kColumnScales; ++i) scale[i] = load_shared(column_scales + (i * kSteps + step) * 4);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) columns[c] = c >= 2 || (c == 1 && early) ? scale[kColumnScales - 1] : scale[0];
        ptx::mbarrier_wait(full + 8 * stage, phases.take(stage));
        const float upper = load_shared(row_scales + stage * kBytesScale), lower = load_shared(row_scales + stage * kBytesScale + 32);
        ptx::wgmma_hold(product);
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kBlock / 32; ++k)
          ptx::wgmma_e4m3(product, first_a + stage * kBytesA / 16 + 2 * k, first_b + stage * kBytesB / 16 + 2 * k, k != 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        if (CLUSTER == 1 && lane == 0) ptx::mbarrier_arrive(empty + 8 * stage);
        if (CLUSTER > 1 && lane < CLUSTER) ptx::mbarrier_arrive_remote(empty + 8 * stage, lane);
        ptx::wgmma_hold(product);
#pragma unroll
        for (int j = 0; j < kColumns / 8; ++j) {
          const float of_upper = upper * columns[j / 8], of_lower = lower * columns[j / 8];
          total[4 * j] += of_upper * product[4 * j];
          total[4 * j + 1] += of_upper * product[4 * j + 1];
          total[4 * j + 2] += of_lower * product[4 * j + 2];
          total[4 * j + 3] += of_lower * product[4 * j + 3];
        }
      };
      constexpr int kWhole = kSteps / STAGES * STAGES;
      for (int step = 0; step < kWhole; step += STAGES) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) do_step(step + stage, stage);
        if (step == 0) walk.look_ahead();
      }
#pragma unroll
      for (int stage = 0; stage < kSteps - kWhole; ++stage) do_step(kWhole + stage, stage);

      more = walk.take(tile);
      if (more) fetch(tile);

      // D leaves through shared memory in pieces of 64 rows by 64 columns, swizzled by 128 bytes.
      if (thread == 0) ptx::store_wait_read<0>();
      ptx::named_barrier_sync(1 + warpgroup, 128);
      const std::uint32_t line = staging + (warp * 16 + lane % 8 + lane / 8 % 2 * 8) * 128;
#pragma unroll
      for (int j = 0; j < kColumns / 16; ++j) {   // 16 columns
        const std::uint32_t sixteen = (j * 2 + lane / 16) % 8;   // which 16 bytes of the 128
        ptx::store_matrix_x4(line + j / 4 * kBytesPiece + (sixteen ^ (lane % 8)) * 16, ptx::pack_bf16(total[8 * j], total[8 * j + 1]),
                             ptx::pack_bf16(total[8 * j + 2], total[8 * j + 3]), ptx::pack_bf16(total[8 * j + 4], total[8 * j + 5]),
                             ptx::pack_bf16(total[8 * j + 6], total[8 * j + 7]));
      }
      ptx::fence_proxy_async();
      ptx::named_barrier_sync(1 + warpgroup, 128);
      if (thread == 0 && now.row < rows) {
        for (int c = 0; c < kColumns / 64; ++c)
          ptx::store_2d(&map_d, staging + c * kBytesPiece, now.column + c * 64, now.row + warpgroup * 64);
        ptx::store_commit();
      }
    };

    walk.look_ahead();
    more = walk.take(tile);
    if (more) fetch(tile);
    while (more) {
#pragma unroll
      for (int i = 0; i < kColumnScales; ++i)
        if (thread < kSteps)
          asm volatile("st.shared.f32 [%0], %1;" ::"r"(column_scales + (i * kSteps + thread) * 4), "f"(fetched[i]) : "memory");
      ptx::named_barrier_sync(1 + warpgroup, 128);
      const Tile now = tile;
      if (kLastColumns == 0 || now.column < kFullTiles * TILE_N) make.template operator()<TILE_N>(now);
      else make.template operator()<(kLastColumns > 0 ? kLastColumns : TILE_N)>(now);
    }
    if (thread == 0) ptx::store_wait<0>();
    __syncwarp();
  }
  // No block leaves while another may still arrive at its barriers.
  if (CLUSTER > 1) ptx::cluster_sync();
}
