// Time and randomness of this process.
#ifndef HONE_BASE_CLOCK_H
#define HONE_BASE_CLOCK_H

#include <chrono>
#include <cstdint>
#include <string>

namespace hone {

double now_s();                  // monotonic, seconds
std::uint64_t now_ns();          // monotonic, nanoseconds
// For libraries that want a duration instead of seconds.
inline std::chrono::steady_clock::duration as_duration(double s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s));
}
std::string utc_timestamp();     // "2026-12-02T01:02:03.456Z"
std::uint64_t random_seed();     // 64 secret bits from the kernel

}  // namespace hone

#endif
