// The management library's view of one GPU (NVML, nvml.h), opened at run time. Reads only; nothing is ever set.
#ifndef HONE_DEVICE_CUDA_NVML_H
#define HONE_DEVICE_CUDA_NVML_H

#include <nlohmann/json.hpp>
#include <string>

namespace hone::cuda {

class Nvml {
 public:
  // "0000:3b:00.0". Without the library every answer is empty.
  explicit Nvml(const std::string& bus_id);

  // What does not change: driver, uuid, power limit (W), highest clocks (MHz).
  nlohmann::json facts() const;
  // Now: sm_mhz, memory_mhz, throttle (reasons' names), power_w, temperature_c, processes (on the GPU, this one too).
  // Members that the library does not know are absent.
  nlohmann::json sample() const;

 private:
  template <class... A>
  bool call(const char* name, A... arguments) const;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace hone::cuda

#endif
