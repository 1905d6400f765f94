#include "device/cpu/topology.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/clock.h"
#include "base/text.h"

namespace hone::cpu {
namespace {

// Hypervisors hide caches; these are larger than most real ones.
constexpr std::size_t kUnknownL2 = std::size_t{2} << 20, kUnknownCache = std::size_t{32} << 20,
                      kLargestCache = std::size_t{512} << 20,
                      kStreamedCache = std::size_t{16} << 20;   // of a larger one, when lines can be evicted
constexpr std::size_t kLine = 64;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::size_t cache_of(int core, int level) {
  for (int index = 0; index < 10; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", core, index);
    if (first_line(folder + "level") != std::to_string(level) || first_line(folder + "type") == "Instruction") continue;
    const std::string size = first_line(folder + "size");   // "512K"
    if (size.empty()) continue;
    const std::size_t unit = size.back() == 'K' ? 1024 : size.back() == 'M' ? std::size_t{1} << 20 : 1;
    return std::strtoull(size.c_str(), nullptr, 10) * unit;
  }
  const long known = ::sysconf(level == 2   ? _SC_LEVEL2_CACHE_SIZE
                               : level == 3 ? _SC_LEVEL3_CACHE_SIZE
                                            : _SC_LEVEL4_CACHE_SIZE);
  return known > 0 ? static_cast<std::size_t>(known) : 0;
}

std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// A chain of dependent additions retires one a cycle: additions a second are cycles a second.
double measured_hz() {
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    constexpr std::uint64_t kAdds = 400000;
    std::uint64_t value = 1;
    const double start = now_s();
    for (std::uint64_t i = 0; i < kAdds; i += 8) {
#if defined(__x86_64__)
      asm volatile(
          "add %0,%0\n\tadd %0,%0\n\tadd %0,%0\n\tadd %0,%0\n\tadd %0,%0\n\tadd %0,%0\n\tadd %0,%0\n\tadd %0,%0"
          : "+r"(value));
#elif defined(__aarch64__)
      asm volatile(
          "add %0,%0,%0\n\tadd %0,%0,%0\n\tadd %0,%0,%0\n\tadd %0,%0,%0\n\tadd %0,%0,%0\n\tadd %0,%0,%0\n\tadd "
          "%0,%0,%0\n\tadd %0,%0,%0"
          : "+r"(value));
#endif
    }
    best = std::max(best, static_cast<double>(kAdds) / (now_s() - start));
  }
  return best;
}

// The most that any core could reach: what the system states, or what was measured and a quarter.
double upper_hz(double measured) {
  double hz = measured * 1.25;
  const std::string stated = first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");   // kHz
  if (!stated.empty()) hz = std::max(hz, std::strtod(stated.c_str(), nullptr) * 1e3);
  hz = std::max(hz, std::strtod(cpuinfo("cpu MHz").c_str(), nullptr) * 1e6);
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_max(0, nullptr) >= 0x16 && __get_cpuid(0x16, &a, &b, &c, &d) != 0)
    hz = std::max(hz, static_cast<double>(b & 0xffffu) * 1e6);
#endif
  return hz;
}

// Floating-point operations a cycle of one core, two wide multiply-add units assumed.
double flops_per_cycle(const std::set<std::string>& flags) {
  if (flags.count("amx_bf16") != 0) return 2048;
  if (flags.count("avx512_bf16") != 0) return 128;
  if (flags.count("avx512f") != 0) return 64;
  if (flags.count("fma") != 0) return 32;
  if (flags.count("sve") != 0) return 64;
  return 16;
}

}  // namespace

Result<Topology> find_topology(int workers) {
  const std::vector<int> cores = allowed_cores();
  const int count = static_cast<int>(cores.size());
  if (workers < 0 || workers > count)
    return fail(
        Error{ErrorKind::usage, fmt::format("{} workers were asked for, this process may use {} cores", workers, count)}
            .with_hint("leave the number out: all cores but one, which is the clock's"));
  Topology topology;
  if (workers == 0) workers = std::max(1, count - 1);
  topology.worker_cores.assign(cores.end() - workers, cores.end());
  topology.clock_core = cores.front();
  topology.clock_core_shared = workers == count;
  const int core = topology.worker_cores.front();
  const std::size_t l2 = cache_of(core, 2), last = std::max(cache_of(core, 3), cache_of(core, 4));
  topology.l2_bytes = l2 != 0 ? std::min(l2, kLargestCache) : kUnknownL2;
  topology.cache_bytes = std::min(last != 0 ? last : kUnknownCache, kLargestCache);
  return topology;
}

Pin::Pin() : before_(sizeof(cpu_set_t)) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) std::memcpy(before_.data(), &set, sizeof set);
  else before_.clear();
}

Pin::~Pin() {
  if (before_.empty()) return;
  cpu_set_t set;
  std::memcpy(&set, before_.data(), sizeof set);
  ::sched_setaffinity(0, sizeof set, &set);
}

void Pin::to(int core) { restrict_to(0, std::span<const int>(&core, 1)); }

bool restrict_to(int tid, std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<unsigned>(core), &set);
  return ::sched_setaffinity(tid, sizeof set, &set) == 0;
}

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kCanEvict = true;
#else
constexpr bool kCanEvict = false;
#endif

#if defined(__x86_64__)
namespace {
bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}
}  // namespace

void CacheFlusher::evict(std::span<const std::byte> bytes) {
  static const bool unordered = has_clflushopt();
  const auto each = [&](auto&& flush_line) {
    for (std::size_t i = 0; i < bytes.size(); i += kLine) flush_line(&bytes[i]);
    if (!bytes.empty()) flush_line(&bytes.back());
  };
  if (unordered) each([](const std::byte* at) { asm volatile("clflushopt %0" : : "m"(*at) : "memory"); });
  else each([](const std::byte* at) { asm volatile("clflush %0" : : "m"(*at) : "memory"); });
  asm volatile("mfence" : : : "memory");
}
#elif defined(__aarch64__)
void CacheFlusher::evict(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += kLine) asm volatile("dc civac, %0" : : "r"(&bytes[i]) : "memory");
  if (!bytes.empty()) asm volatile("dc civac, %0" : : "r"(&bytes.back()) : "memory");
  asm volatile("dsb sy" : : : "memory");
}
#else
void CacheFlusher::evict(std::span<const std::byte>) {}
#endif

CacheFlusher::CacheFlusher(const Topology& topology) : topology_(topology) {
  data_.resize(streamed_bytes() / sizeof(std::uint64_t));
  std::uint64_t state = random_seed() | 1;
  for (std::uint64_t& word : data_) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    word = state;
  }
}

std::uint64_t CacheFlusher::stream(std::size_t bytes) const {
  const std::size_t words = std::min(bytes / sizeof(std::uint64_t), data_.size());
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  for (std::size_t i = 0; i + 32 <= words; i += 32) {   // one word of each 64-byte line is enough to fetch it
    a += data_[i];
    b ^= data_[i + 8];
    c += data_[i + 16];
    d ^= data_[i + 24];
  }
  return a ^ b ^ c ^ d;
}

std::size_t CacheFlusher::streamed_bytes() const {
  const std::size_t last = kCanEvict ? std::min(topology_.cache_bytes, kStreamedCache) : topology_.cache_bytes;
  return 2 * std::max(last, topology_.l2_bytes);
}

void CacheFlusher::flush(Pin& pin, std::span<const std::span<const std::byte>> used) const {
  bool first = true;
  for (const int core : topology_.worker_cores) {
    pin.to(core);
    sink_ += stream(first ? streamed_bytes() : 2 * topology_.l2_bytes);
    first = false;
  }
  pin.to(topology_.clock_core);
  if (!topology_.clock_core_shared) sink_ += stream(2 * topology_.l2_bytes);
  for (const std::span<const std::byte> bytes : used) evict(bytes);
}

double CacheFlusher::read_rate() const {
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const double start = now_s();
    sink_ += stream(data_.size() * sizeof(std::uint64_t));
    best = std::max(best, static_cast<double>(data_.size() * sizeof(std::uint64_t)) / (now_s() - start));
  }
  return best;
}

DeviceInfo describe_machine(const Topology& topology, const CacheFlusher& flusher) {
  std::string flag_text = cpuinfo("flags");
  if (flag_text.empty()) flag_text = cpuinfo("Features");
  std::istringstream words(flag_text);
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);

  DeviceInfo info;
  info.name = "cpu";
  info.architecture = "cpu";
  info.model = cpuinfo("model name");
  if (info.model.empty()) info.model = "unknown CPU";
  info.workers = static_cast<std::int64_t>(topology.worker_cores.size());
  info.cache_bytes = topology.cache_bytes;
  info.memory_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  info.limits.max_grid = {0x7fffffff, 65535, 65535};
  info.limits.max_block = {1, 1, 1};
  info.limits.max_threads_per_block = 1;
  info.limits.max_cluster = 1;
  info.limits.max_shared_bytes = std::int64_t{8} << 20;
  info.limits.max_workspace_bytes = std::int64_t{1} << 30;

  const double measured = measured_hz(), hz = upper_hz(measured), rate = flusher.read_rate();
  const auto workers = static_cast<double>(info.workers);
  info.peak_flops = workers * hz * flops_per_cycle(flags);
  // What was measured may have been measured on a busy machine. No core reads faster from memory than its fill
  // buffers allow: 48 lines of 64 bytes in flight, 60 ns each, are 51 GB/s.
  constexpr double kCoreBytes = 51e9;
  info.peak_bytes = workers * std::max(kCoreBytes, 3 * rate);

  utsname system = {};
  ::uname(&system);
  const auto frequency = [](const char* name) -> nlohmann::json {
    const std::string text = first_line(std::string("/sys/devices/system/cpu/cpu0/cpufreq/") + name);
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  info.facts = {
      {"vendor", cpuinfo("vendor_id")},
      {"family", cpuinfo("cpu family")},
      {"stepping", cpuinfo("stepping")},
      {"flags", std::vector<std::string>(flags.begin(), flags.end())},
      {"worker_cores", topology.worker_cores},
      {"clock_core", topology.clock_core},
      {"clock_core_shared", topology.clock_core_shared},
      {"sleep_checked", !first_line("/proc/self/syscall").empty()},   // Runner::at_rest can tell
      {"l2_bytes", topology.l2_bytes},
      {"hypervisor", flags.count("hypervisor") != 0},
      {"kernel", std::string(system.sysname) + " " + system.release},
      {"governor", frequency("scaling_governor")},
      {"frequency_limit_khz", frequency("cpuinfo_max_freq")},
      {"measured_hz", measured},
      {"bound_hz", hz},
      {"flops_per_cycle", flops_per_cycle(flags)},
      {"read_bytes_per_second", rate},
      {"flush", {{"streamed_bytes", flusher.streamed_bytes()}, {"lines_evicted", kCanEvict}}},
  };
  return info;
}

}  // namespace hone::cpu
