// Philox words in bulk: what random_u32 gives one at a time, eight blocks at once where the CPU has AVX2.
#ifndef HONE_CONTRACT_PHILOX_FILL_H
#define HONE_CONTRACT_PHILOX_FILL_H

#include <cstddef>
#include <cstdint>

namespace hone {

// Words of blocks first .. first + blocks - 1, four each, to `out`.
void random_blocks(std::uint64_t seed, std::uint32_t stream, std::uint32_t call, std::uint64_t first, std::size_t blocks,
                   std::uint32_t* out);

}  // namespace hone

#endif
