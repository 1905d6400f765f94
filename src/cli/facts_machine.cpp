#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/fs.h"
#include "base/text.h"
#include "cli/facts.h"

namespace hone::cli {
namespace {

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The value of the first line "key : value" of /proc/cpuinfo.
std::string cpuinfo(std::string_view key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return {};
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

Fact cpu() {
  const std::string model = cpuinfo("model name");
  return {.id = "cpu", .value = model.empty() ? "unknown model" : model};
}

Fact features() {
  static constexpr std::array kWanted{"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_tile"};
  std::istringstream words(cpuinfo("flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  std::vector<std::string> there;
  for (const char* name : kWanted)
    if (flags.contains(name)) there.emplace_back(name);
  if (flags.contains("avx2") && flags.contains("fma")) return {.id = "cpu_features", .value = fmt::format("{}", fmt::join(there, " "))};
  return {.id = "cpu_features", .state = Fact::State::note, .value = there.empty() ? "none of AVX2, FMA" : fmt::format("{}", fmt::join(there, " ")),
          .cost = "kernels in kernels/ that use AVX2 or FMA do not run here", .mend = "use a machine with AVX2 (2013 or later)"};
}

Fact cores(int workers) {
  const int usable = usable_cores();
  const int used = workers > 0 ? workers : std::max(1, usable - 1);
  Fact fact{.id = "cores", .value = fmt::format("{} usable, {} worker thread{}{}", usable, used, used == 1 ? "" : "s",
                                                 workers > 0 ? " (HONE_WORKERS)" : "")};
  if (usable < 2) {
    fact.state = Fact::State::note;
    fact.cost = "the clock shares its core with the kernels: timings are noisier";
    fact.mend = "use a machine with two cores or more";
  } else if (workers >= usable) {
    fact.state = Fact::State::note;
    fact.cost = "no core is left for the clock: timings are noisier";
    fact.mend = fmt::format("unset HONE_WORKERS, or set it to {}", usable - 1);
  }
  return fact;
}

Fact caches() {
  std::vector<std::string> found;
  for (int index = 0; index < 8; ++index) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", index);
    const std::string level = first_line(folder / "level"), type = first_line(folder / "type"), size = first_line(folder / "size");
    if (!size.empty() && type != "Instruction") found.push_back(fmt::format("L{} {}", level, size));
  }
  if (!found.empty()) return {.id = "caches", .value = fmt::format("{}", fmt::join(found, ", "))};
  return {.id = "caches", .state = Fact::State::note, .value = "not told by the kernel",
          .cost = "the flush between timed calls uses a size that is safe for large caches: slower", .mend = "mount /sys"};
}

Fact governor() {
  const std::string name = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (name.empty()) return {.id = "governor", .value = "not visible (virtual machine or fixed clock)"};
  if (name == "performance") return {.id = "governor", .value = name};
  return {.id = "governor", .state = Fact::State::note, .value = name, .cost = "clocks drift: intervals are wider, measuring takes longer",
          .mend = "cpupower frequency-set -g performance"};
}

// What Runner::at_rest reads.
Fact sleep_check() {
  std::ifstream in("/proc/self/syscall");
  std::string line;
  if (std::getline(in, line)) return {.id = "sleep_check", .value = "the kernel shows where a sleeping thread waits"};
  return {.id = "sleep_check", .state = Fact::State::note, .value = "the kernel does not show where a sleeping thread waits",
          .cost = "a worker that a candidate keeps to itself between calls is found by its CPU time alone; receipts say so",
          .mend = "use a kernel with /proc/PID/syscall (CONFIG_HAVE_ARCH_TRACEHOOK)"};
}

Fact memory() {
  struct sysinfo info = {};
  if (::sysinfo(&info) != 0) return {.id = "memory", .state = Fact::State::note, .value = "unknown"};
  std::uint64_t available = (std::uint64_t{info.freeram} + info.bufferram) * info.mem_unit;
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("MemAvailable:")) available = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  Fact fact{.id = "memory", .value = fmt::format("{} of {} available", format_bytes(available),
                                                  format_bytes(std::uint64_t{info.totalram} * info.mem_unit))};
  if (available < (std::uint64_t{2} << 30)) {
    fact.state = Fact::State::note;
    fact.cost = "large workloads and the compiler may run out of memory";
    fact.mend = "end other programs, or use a machine with 4 GiB or more";
  }
  return fact;
}

// The nearest existing folder at or above `path`: where its file system is.
fs::path existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

Fact disk(const std::string& id, const fs::path& path, std::uint64_t wanted, bool needed) {
  const fs::path folder = existing(path);
  struct statvfs info = {};
  if (::statvfs(folder.c_str(), &info) != 0 || ::access(folder.c_str(), W_OK) != 0 || (info.f_flag & ST_RDONLY) != 0)
    return {.id = id, .state = Fact::State::missing, .value = fmt::format("{} cannot be written", folder.string()),
            .cost = "nothing can be compiled or recorded", .mend = "set HONE_HOME (data, caches) or TMPDIR to a folder that this user can write",
            .needed = needed};
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  Fact fact{.id = id, .value = fmt::format("{} free in {}", format_bytes(free), path.string()), .needed = needed};
  if (free < wanted) {
    fact.state = free < (std::uint64_t{16} << 20) ? Fact::State::missing : Fact::State::note;
    fact.cost = "compiles may fail with a full disk";
    fact.mend = fmt::format("free {} there", format_bytes(wanted - free));
  }
  return fact;
}

// Set in this shell, they would slow a library; Hone starts baselines in a clean environment.
Fact variables() {
  static constexpr std::array kNames{"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "DNNL_MAX_CPU_ISA",
                                     "ONEDNN_MAX_CPU_ISA", "GOTO_NUM_THREADS", "MALLOC_ARENA_MAX", "LD_PRELOAD"};
  std::vector<std::string> set;
  for (const char* name : kNames)
    if (const char* value = std::getenv(name); value != nullptr) set.push_back(fmt::format("{}={}", name, value));
  if (set.empty()) return {.id = "environment", .value = "no variable that slows a library is set"};
  return {.id = "environment", .state = Fact::State::note, .value = fmt::format("{}", fmt::join(set, " ")),
          .cost = "none: kernels and baselines start in a clean environment, these are not passed on", .mend = "nothing to do"};
}

}  // namespace

FactGroup machine_facts(int workers) {
  const char* temp = std::getenv("TMPDIR");
  return {"machine",
          {cpu(), features(), cores(workers), caches(), governor(), sleep_check(), memory(),
           disk("temp_space", temp != nullptr && *temp != '\0' ? temp : "/tmp", std::uint64_t{1} << 30, true),
           disk("cache_space", cache_dir(), std::uint64_t{1} << 30, true), disk("data_space", data_dir(), std::uint64_t{256} << 20, true),
           variables()}};
}

}  // namespace hone::cli
