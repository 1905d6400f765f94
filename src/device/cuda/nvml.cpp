#include "device/cuda/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace hone::cuda {
namespace {

constexpr unsigned kSmClock = 1, kMemoryClock = 2, kCore = 0;   // NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU

// nvmlClocksEventReason*. Idle and the applications' setting are no throttling.
constexpr std::pair<unsigned long long, const char*> kReasons[] = {
    {0x4, "power cap"},          {0x8, "hardware slowdown"},    {0x10, "sync boost"},
    {0x20, "software thermal"},  {0x40, "hardware thermal"},    {0x80, "hardware power brake"},
    {0x100, "display clock"}};

struct Process {               // nvmlProcessInfo_t
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

template <class... A>
bool Nvml::call(const char* name, A... arguments) const {
  void* symbol = library_ == nullptr ? nullptr : ::dlsym(library_, name);
  return symbol != nullptr && reinterpret_cast<int (*)(A...)>(symbol)(arguments...) == 0;
}

Nvml::Nvml(const std::string& bus_id) {
  library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!call("nvmlInit_v2") || !call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device_)) library_ = nullptr;
}

nlohmann::json Nvml::facts() const {
  nlohmann::json out = nlohmann::json::object();
  std::array<char, 96> text = {};
  unsigned value = 0;
  if (call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size()))) out["driver"] = text.data();
  if (call("nvmlDeviceGetUUID", device_, text.data(), static_cast<unsigned>(text.size()))) out["uuid"] = text.data();
  if (call("nvmlDeviceGetEnforcedPowerLimit", device_, &value)) out["power_limit_w"] = value / 1000.0;
  if (call("nvmlDeviceGetMaxClockInfo", device_, kSmClock, &value)) out["max_sm_mhz"] = value;
  if (call("nvmlDeviceGetMaxClockInfo", device_, kMemoryClock, &value)) out["max_memory_mhz"] = value;
  return out;
}

nlohmann::json Nvml::sample() const {
  nlohmann::json out = nlohmann::json::object();
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (call("nvmlDeviceGetClockInfo", device_, kSmClock, &value)) out["sm_mhz"] = value;
  if (call("nvmlDeviceGetClockInfo", device_, kMemoryClock, &value)) out["memory_mhz"] = value;
  if (call("nvmlDeviceGetPowerUsage", device_, &value)) out["power_w"] = value / 1000.0;
  if (call("nvmlDeviceGetTemperature", device_, kCore, &value)) out["temperature_c"] = value;
  if (call("nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons)) {
    out["throttle"] = nlohmann::json::array();
    for (const auto& [bit, name] : kReasons)
      if ((reasons & bit) != 0) out["throttle"].push_back(name);
  }
  std::array<Process, 64> processes;
  unsigned count = static_cast<unsigned>(processes.size());
  if (call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, processes.data())) out["processes"] = count;
  return out;
}

}  // namespace hone::cuda
