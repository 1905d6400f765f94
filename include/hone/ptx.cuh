// Wrappers of the PTX instructions that CUDA C++ has no words for, as kernels for sm_90a use them.
// Each is one instruction (a wait loops over one); nothing is hidden behind it. Headings name the sections of the PTX
// ISA manual, whose numbers change from version to version. Shared-memory addresses are 32-bit, as `shared_address`
// gives them.
#ifndef HONE_PTX_CUH
#define HONE_PTX_CUH

#include <cstdint>

namespace hone {

// A tensor map as the plan made it; a kernel takes it as `const __grid_constant__ hone::TensorMap`.
struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

namespace ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// One lane of a converged warp, the same at every call (section elect.sync).
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(elected));
  return elected != 0;
}

// ---- clusters (sections %cluster_ctarank, barrier.cluster)

__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
// Stores at the same place in the shared memory of block `rank` of the cluster (sections mapa, st).
__device__ __forceinline__ void store_remote(const int* place, int rank, int value) {
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; st.shared::cluster.s32 [remote], %2; }" ::"r"(
                   shared_address(place)), "r"(rank), "r"(value) : "memory");
}
__device__ __forceinline__ void store_remote(const float* place, int rank, float value) {
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; st.shared::cluster.f32 [remote], %2; }" ::"r"(
                   shared_address(place)), "r"(rank), "f"(value) : "memory");
}
__device__ __forceinline__ void store_remote(const void* place, int rank, float first, float second) {
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; st.shared::cluster.v2.f32 [remote], {%2, %3}; }" ::"r"(
                   shared_address(place)), "r"(rank), "f"(first), "f"(second) : "memory");
}

// ---- barriers of some of a block's threads (section bar, barrier): `id` 1 to 15, `threads` a multiple of 32

__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- mbarriers (section mbarrier): 8 bytes of shared memory. `parity` is that of the phase waited for: 0 first.

__device__ __forceinline__ void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives at the barrier of the same offset in block `rank` of the cluster (section mapa).
__device__ __forceinline__ void mbarrier_arrive_remote(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::
          "r"(barrier), "r"(rank) : "memory");
}
// Arrives, and has the phase wait for `bytes` more of asynchronous copies.
__device__ __forceinline__ void mbarrier_arrive_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ bool mbarrier_try_wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
      : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  return done != 0;
}
__device__ __forceinline__ void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

// ---- fences (section membar, fence)

// Makes the initial state of mbarriers visible to the cluster and to asynchronous copies.
__device__ __forceinline__ void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Orders this thread's ordinary accesses to shared memory, reads too, before later ones of the asynchronous proxy.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- bulk copies (sections cp.async.bulk, cp.async.bulk.tensor, prefetch): `x` counts elements of the innermost
// dimension. A load completes `barrier` by its box's bytes, those outside the tensor included; with a mask, in each
// block of the cluster whose bit is set.

__device__ __forceinline__ void prefetch_tensor_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void load_2d(std::uint32_t to, const TensorMap* map, std::uint32_t barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
                   "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void load_3d(std::uint32_t to, const TensorMap* map, std::uint32_t barrier, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
                   "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void load_2d_multicast(std::uint32_t to, const TensorMap* map, std::uint32_t barrier, int x, int y,
                                                  std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks) : "memory");
}
__device__ __forceinline__ void load_3d_multicast(std::uint32_t to, const TensorMap* map, std::uint32_t barrier, int x, int y,
                                                  int z, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks) : "memory");
}
// `bytes` contiguous bytes; both addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void load_bulk(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                   "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
__device__ __forceinline__ void store_2d(const TensorMap* map, std::uint32_t from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::
                   "l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until all but the thread's last `kGroups` groups of stores have read their shared memory; until they are done.
template <int kGroups>
__device__ __forceinline__ void store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
template <int kGroups>
__device__ __forceinline__ void store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
}

// ---- registers of a warpgroup (section setmaxnreg), programmatic dependent launch (section griddepcontrol)

template <int kRegisters>
__device__ __forceinline__ void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
__device__ __forceinline__ void grid_dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void grid_dependency_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// ---- 16-bit results

// Two floats rounded to BF16, to nearest even; `low` in the low half (section cvt).
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
__device__ __forceinline__ std::uint32_t pack_f16(float low, float high) {
  std::uint32_t out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
// Four 8x8 matrices of 16-bit elements; lanes 8i to 8i+7 give the addresses of matrix i's rows (section stmatrix).
__device__ __forceinline__ void store_matrix_x4(std::uint32_t row, std::uint32_t m0, std::uint32_t m1, std::uint32_t m2,
                                                std::uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m0), "r"(m1), "r"(m2), "r"(m3)
               : "memory");
}

// ---- wgmma (section Asynchronous Warpgroup Level Matrix Instructions): D[64][N] (+)= A[64][K] * B[N][K]^T by the four
// warps of a warpgroup

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}
// Keeps the compiler from moving uses of accumulators over the fence or wait beside it.
template <int kCount>
__device__ __forceinline__ void wgmma_hold(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Matrix descriptor (section wgmma, Matrix Descriptor Format) of rows of 128 bytes along K, swizzled by 128 bytes, as a
// tensor map with swizzle "128B" leaves them: groups of 8 rows lie 1024 bytes apart, the first at a multiple of 1024.
// The next 32 bytes along K are the descriptor + 2.
__device__ __forceinline__ std::uint64_t descriptor_128b(std::uint32_t address) {
  return std::uint64_t{(address & 0x3ffffu) >> 4} | (std::uint64_t{1} << 16) | (std::uint64_t{1024 >> 4} << 32) |
         (std::uint64_t{1} << 62);
}

// The asm text and operands of N/2 accumulators.
#define HONE_PTX_0_31                                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define HONE_PTX_32_47 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HONE_PTX_48_63 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HONE_PTX_64_95                                                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, " \
  "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HONE_PTX_96_127                                                                                       \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, " \
  "%114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define HONE_PTX_D8(i)                                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define HONE_PTX_D16(i) HONE_PTX_D8(i), HONE_PTX_D8(i + 8)
#define HONE_PTX_D32(i) HONE_PTX_D16(i), HONE_PTX_D16(i + 16)
#define HONE_PTX_D64(i) HONE_PTX_D32(i), HONE_PTX_D32(i + 32)

// One overload for each count of accumulators, N/2 a thread: element 4j + 2h + c of thread t lies in row
// 16 (t/32) + (t mod 32)/4 + 8h, column 8j + 2 (t mod 4) + c. Without `accumulate` D is overwritten.
#define HONE_PTX_WGMMA(function, shape, tail, count, texts, a_at, b_at, p_at, ...)                                    \
  __device__ __forceinline__ void function(float(&d)[count], std::uint64_t a, std::uint64_t b, bool accumulate) {      \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #p_at ", 0; wgmma.mma_async.sync.aligned." shape " {" texts \
                 "}, %" #a_at ", %" #b_at ", p, 1, 1" tail "; }" \
                 : __VA_ARGS__ \
                 : "l"(a), "l"(b), "r"(static_cast<std::uint32_t>(accumulate))); \
  }
#define HONE_PTX_WGMMA_ALL(function, k, types, tail) \
  HONE_PTX_WGMMA(function, "m64n64" k types, tail, 32, HONE_PTX_0_31, 32, 33, 34, HONE_PTX_D32(0)) \
  HONE_PTX_WGMMA(function, "m64n96" k types, tail, 48, HONE_PTX_0_31 HONE_PTX_32_47, 48, 49, 50, HONE_PTX_D32(0), \
                 HONE_PTX_D16(32)) \
  HONE_PTX_WGMMA(function, "m64n128" k types, tail, 64, HONE_PTX_0_31 HONE_PTX_32_47 HONE_PTX_48_63, 64, 65, 66, \
                 HONE_PTX_D64(0)) \
  HONE_PTX_WGMMA(function, "m64n192" k types, tail, 96, HONE_PTX_0_31 HONE_PTX_32_47 HONE_PTX_48_63 HONE_PTX_64_95, 96, \
                 97, 98, HONE_PTX_D64(0), HONE_PTX_D32(64)) \
  HONE_PTX_WGMMA(function, "m64n256" k types, tail, 128, \
                 HONE_PTX_0_31 HONE_PTX_32_47 HONE_PTX_48_63 HONE_PTX_64_95 HONE_PTX_96_127, 128, 129, 130, \
                 HONE_PTX_D64(0), HONE_PTX_D64(64))

HONE_PTX_WGMMA_ALL(wgmma_e4m3, "k32", ".f32.e4m3.e4m3", "")             // K = 32, both operands K-major
HONE_PTX_WGMMA_ALL(wgmma_bf16, "k16", ".f32.bf16.bf16", ", 0, 0")       // K = 16, both operands K-major
HONE_PTX_WGMMA_ALL(wgmma_f16, "k16", ".f32.f16.f16", ", 0, 0")

#undef HONE_PTX_WGMMA_ALL
#undef HONE_PTX_WGMMA
#undef HONE_PTX_D64
#undef HONE_PTX_D32
#undef HONE_PTX_D16
#undef HONE_PTX_D8
#undef HONE_PTX_96_127
#undef HONE_PTX_64_95
#undef HONE_PTX_48_63
#undef HONE_PTX_32_47
#undef HONE_PTX_0_31

}  // namespace ptx
}  // namespace hone

#endif
