// What kinds of instructions a kernel is made of: counts by opcode class, for PTX, SASS and x86.
#ifndef HONE_INSPECT_MIX_H
#define HONE_INSPECT_MIX_H

#include <array>
#include <cstddef>
#include <string_view>

namespace hone {

// name, what counts
#define HONE_OP_CLASSES(X)                                                                        \
  X(tensor, "matrix units: wgmma, mma, tcgen05 and its memory; amx and dot products on a CPU")    \
  X(async, "TMA and other asynchronous copies, prefetches")                                       \
  X(global_load, "global or generic loads; a CPU's loads")                                        \
  X(global_store, "global or generic stores; a CPU's stores")                                     \
  X(shared_load, "shared memory loads, ldmatrix")                                                 \
  X(shared_store, "shared memory stores, stmatrix")                                               \
  X(local_load, "local memory loads: spills and arrays of a thread")                              \
  X(local_store, "local memory stores")                                                           \
  X(constant, "constant bank and parameter loads")                                                \
  X(atomic, "atomics and reductions in memory")                                                   \
  X(barrier, "barriers, mbarriers, fences, waits")                                                \
  X(fp32, "single precision arithmetic")                                                          \
  X(fp16, "half and bfloat16 arithmetic")                                                         \
  X(fp64, "double precision arithmetic")                                                          \
  X(convert, "conversions between types")                                                         \
  X(integer, "integer, bit and address arithmetic, predicates")                                   \
  X(move, "moves between registers, special registers")                                           \
  X(warp, "exchange between a warp's lanes: shuffles, votes")                                     \
  X(branch, "jumps, calls, returns, convergence")                                                 \
  X(other, "everything else")

enum class OpClass {
#define HONE_OP_CLASS(name, text) name,
  HONE_OP_CLASSES(HONE_OP_CLASS)
#undef HONE_OP_CLASS
};
inline constexpr std::size_t kOpClasses = static_cast<std::size_t>(OpClass::other) + 1;
std::string_view name_of(OpClass kind);

using Mix = std::array<std::size_t, kOpClasses>;

// "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "ld.global.nc.v4.f32".
OpClass class_of_ptx(std::string_view opcode);
// "HGMMA.64x256x16.F32.BF16", "UTMALDG.2D".
OpClass class_of_sass(std::string_view opcode);
// "vfmadd231ps" and its operands in AT&T's order, which tell loads from stores.
OpClass class_of_x86(std::string_view opcode, std::string_view operands);

}  // namespace hone

#endif
