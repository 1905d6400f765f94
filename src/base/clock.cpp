#include "base/clock.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <time.h>

#include <cstdlib>

namespace hone {
namespace {

timespec read_clock(clockid_t id) {
  timespec time = {};
  ::clock_gettime(id, &time);
  return time;
}

}  // namespace

std::uint64_t now_ns() {
  const timespec time = read_clock(CLOCK_MONOTONIC);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

double now_s() { return static_cast<double>(now_ns()) * 1e-9; }

std::string utc_timestamp() {
  const timespec time = read_clock(CLOCK_REALTIME);
  tm parts = {};
  ::gmtime_r(&time.tv_sec, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec, time.tv_nsec / 1'000'000);
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) std::abort();
  return seed;
}

}  // namespace hone
