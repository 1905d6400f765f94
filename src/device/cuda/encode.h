// What the judge's process and hone-gpu say to one another, as JSON: one object a request, one an answer.
//
// Requests {"do": NAME, ...}; answers {"ok": VALUE} or {"error": Error}, with "dead": true when the process ends after it
// (the context is poisoned). Floating values are their bits: JSON has neither NaN nor infinity.
#ifndef HONE_DEVICE_CUDA_ENCODE_H
#define HONE_DEVICE_CUDA_ENCODE_H

#include <bit>
#include <nlohmann/json.hpp>
#include <vector>

#include "device/device.h"

namespace hone::cuda {

inline constexpr int kChannelFd = 3, kTransferFd = 4;   // in hone-gpu: the channel, and memory for bulk data

inline std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }
inline double from_bits(const nlohmann::json& value) { return std::bit_cast<double>(value.get<std::uint64_t>()); }

nlohmann::json to_json(const DeviceInfo& info);
DeviceInfo info_from(const nlohmann::json& in);

nlohmann::json to_json(const Workload& workload);
Workload workload_from(const nlohmann::json& in);

nlohmann::json to_json(const InputSet& set);
InputSet input_set_from(const nlohmann::json& in);

nlohmann::json to_json(const std::vector<Region>& regions);
std::vector<Region> regions_from(const nlohmann::json& in);

nlohmann::json to_json(const Pairing& pairing);
Pairing pairing_from(const nlohmann::json& in);

nlohmann::json to_json(const RegionSums& sums);
RegionSums sums_from(const nlohmann::json& in);

nlohmann::json to_json(const OddElements& odd);
OddElements odd_from(const nlohmann::json& in);

}  // namespace hone::cuda

#endif
