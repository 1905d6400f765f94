// What a GPU is, for --info.
#include <algorithm>

#include "device/cuda/engine.h"

namespace hone::cuda {
namespace {

// Dense operations a multiprocessor and clock in the widest format of its matrix units; an upper bound for the floor.
double flops_per_clock(int major, int minor) {
  if (major == 9) return 8192;                       // FP8
  if (major == 8) return minor == 0 ? 4096 : 2048;   // INT8; FP8 from 8.9 on
  if (major < 8) return 2048;
  return 32768;                                      // FP4
}

}  // namespace

Result<DeviceInfo> describe_gpu(int ordinal) {
  int count = 0;
  cu.device_count(&count);
  CUdevice device = 0;
  if (ordinal < 0 || ordinal >= count || cu.device_get(&device, ordinal) != kSuccess)
    return fail(make_error(ErrorKind::environment, "there is no GPU {}: the CUDA driver finds {}", ordinal, count)
                    .with_hint("GPUs count from 0; look at nvidia-smi and at CUDA_VISIBLE_DEVICES"));
  const auto attribute = [&](int which) {
    int value = 0;
    cu.device_attribute(&value, which, device);
    return std::int64_t{value};
  };
  char name[256] = "", bus_id[64] = "";
  std::size_t memory = 0;
  int version = 0;
  HONE_CHECK(check(cu.device_name(name, sizeof name, device), "asking for the GPU's name"));
  HONE_CHECK(check(cu.device_memory(&memory, device), "asking for the GPU's memory"));
  cu.device_bus_id(bus_id, sizeof bus_id, device);
  cu.driver_version(&version);
  const auto major = static_cast<int>(attribute(kMajor)), minor = static_cast<int>(attribute(kMinor));
  const Nvml nvml(bus_id);

  DeviceInfo out;
  out.name = "cuda";
  out.model = name;
  out.architecture = fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
  out.workers = attribute(kMultiprocessors);
  out.cache_bytes = static_cast<std::uint64_t>(attribute(kL2Bytes));
  out.memory_bytes = memory;
  for (std::size_t d = 0; d < 3; ++d) {
    out.limits.max_grid[d] = attribute(kMaxGridX + static_cast<int>(d));
    out.limits.max_block[d] = attribute(kMaxBlockX + static_cast<int>(d));
  }
  out.limits.max_threads_per_block = attribute(kMaxThreadsPerBlock);
  out.limits.max_cluster = major >= 9 ? 16 : 1;      // beyond 8 as the kernel's resources allow: seen at load
  out.limits.max_shared_bytes = attribute(kSharedOptin);
  out.limits.max_workspace_bytes = static_cast<std::int64_t>(memory / 2);
  out.limits.max_resident_blocks = attribute(kCooperative) != 0 ? out.workers * attribute(kMaxBlocksPerMultiprocessor) : 0;
  out.limits.tensor_maps = major >= 9 && cu.tensor_map_encode != nullptr;
  out.facts = nvml.facts();
  // The highest clocks: upper bounds.
  const double sm_hz = out.facts.contains("max_sm_mhz") ? out.facts["max_sm_mhz"].get<double>() * 1e6 : static_cast<double>(attribute(kClockRate)) * 1e3;
  const double memory_hz = out.facts.contains("max_memory_mhz") ? out.facts["max_memory_mhz"].get<double>() * 1e6 : static_cast<double>(attribute(kMemoryClockRate)) * 1e3;
  out.peak_flops = static_cast<double>(out.workers) * flops_per_clock(major, minor) * sm_hz;
  out.peak_bytes = memory_hz * 2 * static_cast<double>(attribute(kBusWidth)) / 8;
  out.facts["cuda_driver"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  out.facts["compute_capability"] = fmt::format("{}.{}", major, minor);
  out.facts["bus_id"] = std::string(bus_id);
  out.facts["ecc"] = attribute(kEcc) != 0;
  return out;
}

}  // namespace hone::cuda
