// Time and randomness of this process.
#ifndef HONE_BASE_CLOCK_H
#define HONE_BASE_CLOCK_H

#include <cstdint>
#include <string>

namespace hone {

double now_s();                  // monotonic, seconds
std::uint64_t now_ns();          // monotonic, nanoseconds
std::string utc_timestamp();     // "2026-12-02T01:02:03.456Z"
std::uint64_t random_seed();     // 64 secret bits from the kernel

}  // namespace hone

#endif
