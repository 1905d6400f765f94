#include "device/cuda/encode.h"

namespace hone::cuda {

using nlohmann::json;

json to_json(const DeviceInfo& info) {
  const ProgramLimits& limits = info.limits;
  return {{"name", info.name},
          {"model", info.model},
          {"architecture", info.architecture},
          {"workers", info.workers},
          {"cache_bytes", info.cache_bytes},
          {"memory_bytes", info.memory_bytes},
          {"peak_flops", info.peak_flops},
          {"peak_bytes", info.peak_bytes},
          {"facts", info.facts},
          {"limits",
           {{"max_grid", limits.max_grid},
            {"max_block", limits.max_block},
            {"max_threads_per_block", limits.max_threads_per_block},
            {"max_cluster", limits.max_cluster},
            {"max_shared_bytes", limits.max_shared_bytes},
            {"max_workspace_bytes", limits.max_workspace_bytes},
            {"max_resident_blocks", limits.max_resident_blocks},
            {"tensor_maps", limits.tensor_maps}}}};
}

DeviceInfo info_from(const json& in) {
  DeviceInfo out;
  in.at("name").get_to(out.name);
  in.at("model").get_to(out.model);
  in.at("architecture").get_to(out.architecture);
  in.at("workers").get_to(out.workers);
  in.at("cache_bytes").get_to(out.cache_bytes);
  in.at("memory_bytes").get_to(out.memory_bytes);
  in.at("peak_flops").get_to(out.peak_flops);
  in.at("peak_bytes").get_to(out.peak_bytes);
  out.facts = in.at("facts");
  const json& limits = in.at("limits");
  limits.at("max_grid").get_to(out.limits.max_grid);
  limits.at("max_block").get_to(out.limits.max_block);
  limits.at("max_threads_per_block").get_to(out.limits.max_threads_per_block);
  limits.at("max_cluster").get_to(out.limits.max_cluster);
  limits.at("max_shared_bytes").get_to(out.limits.max_shared_bytes);
  limits.at("max_workspace_bytes").get_to(out.limits.max_workspace_bytes);
  limits.at("max_resident_blocks").get_to(out.limits.max_resident_blocks);
  limits.at("tensor_maps").get_to(out.limits.tensor_maps);
  return out;
}

json to_json(const Workload& workload) {
  json tensors = json::array();
  for (const TensorShape& each : workload.tensors)
    tensors.push_back({{"name", each.name},
                       {"dtype", static_cast<int>(each.dtype)},
                       {"role", static_cast<int>(each.role)},
                       {"shape", each.shape},
                       {"strides", each.strides},
                       {"alignment", each.alignment}});
  return {{"id", workload.id}, {"axes", workload.axes}, {"tensors", std::move(tensors)}};
}

Workload workload_from(const json& in) {
  Workload out;
  in.at("id").get_to(out.id);
  in.at("axes").get_to(out.axes);
  for (const json& each : in.at("tensors")) {
    TensorShape& tensor = out.tensors.emplace_back();
    each.at("name").get_to(tensor.name);
    tensor.dtype = static_cast<DType>(each.at("dtype").get<int>());
    tensor.role = static_cast<TensorRole>(each.at("role").get<int>());
    each.at("shape").get_to(tensor.shape);
    each.at("strides").get_to(tensor.strides);
    each.at("alignment").get_to(tensor.alignment);
  }
  return out;
}

json to_json(const InputSet& set) {
  json inputs = json::object();
  for (const auto& [name, each] : set.inputs)
    inputs[name] = {{"kind", static_cast<int>(each.kind)}, {"low", bits_of(each.low)}, {"high", bits_of(each.high)}};
  return {{"name", set.name}, {"inputs", std::move(inputs)}};
}

InputSet input_set_from(const json& in) {
  InputSet out;
  in.at("name").get_to(out.name);
  for (const auto& [name, each] : in.at("inputs").items())
    out.inputs[name] = {static_cast<Distribution::Kind>(each.at("kind").get<int>()), from_bits(each.at("low")), from_bits(each.at("high"))};
  return out;
}

json to_json(const std::vector<Region>& regions) {
  json out = json::array();
  for (const Region& each : regions) out.push_back({each.name, each.begin, each.end});
  return out;
}

std::vector<Region> regions_from(const json& in) {
  std::vector<Region> out;
  for (const json& each : in)
    out.push_back({each.at(0).get<std::string>(), each.at(1).get<std::int64_t>(), each.at(2).get<std::int64_t>()});
  return out;
}

json to_json(const Pairing& pairing) {
  json out = {{"tensor", pairing.tensor}};
  if (pairing.got) out["got"] = *pairing.got;
  if (pairing.expected) out["expected"] = *pairing.expected;
  return out;
}

Pairing pairing_from(const json& in) {
  Pairing out;
  in.at("tensor").get_to(out.tensor);
  if (in.contains("got")) out.got = in["got"].get<ProgramId>();
  if (in.contains("expected")) out.expected = in["expected"].get<ProgramId>();
  return out;
}

json to_json(const RegionSums& sums) {
  return {bits_of(sums.error2),    bits_of(sums.got2),         bits_of(sums.expected2),
          bits_of(sums.worst_row), bits_of(sums.worst_bound),  bits_of(sums.max_error),
          bits_of(sums.max_expected), bits_of(sums.max_got), sums.special};
}

RegionSums sums_from(const json& in) {
  RegionSums out;
  std::size_t i = 0;
  for (double* value : {&out.error2, &out.got2, &out.expected2, &out.worst_row, &out.worst_bound, &out.max_error,
                        &out.max_expected, &out.max_got})
    *value = from_bits(in.at(i++));
  in.at(i).get_to(out.special);
  return out;
}

namespace {

json to_json(const std::optional<OddElement>& element) {
  if (!element) return nullptr;
  return {element->row, element->column, bits_of(element->got), bits_of(element->expected)};
}

std::optional<OddElement> element_from(const json& in) {
  if (in.is_null()) return std::nullopt;
  return OddElement{in.at(0).get<std::int64_t>(), in.at(1).get<std::int64_t>(), from_bits(in.at(2)), from_bits(in.at(3))};
}

}  // namespace

json to_json(const OddElements& odd) {
  return {{"counts", {odd.not_written, odd.non_finite, odd.wrong, odd.special}},
          {"not_written", to_json(odd.first_not_written)},
          {"non_finite", to_json(odd.first_non_finite)},
          {"wrong", to_json(odd.first_wrong)},
          {"constant", {odd.constant, odd.expected_constant}},
          {"first", {bits_of(odd.first_got), bits_of(odd.first_expected)}}};
}

OddElements odd_from(const json& in) {
  OddElements out;
  const json& counts = in.at("counts");
  counts.at(0).get_to(out.not_written);
  counts.at(1).get_to(out.non_finite);
  counts.at(2).get_to(out.wrong);
  counts.at(3).get_to(out.special);
  out.first_not_written = element_from(in.at("not_written"));
  out.first_non_finite = element_from(in.at("non_finite"));
  out.first_wrong = element_from(in.at("wrong"));
  in.at("constant").at(0).get_to(out.constant);
  in.at("constant").at(1).get_to(out.expected_constant);
  out.first_got = from_bits(in.at("first").at(0));
  out.first_expected = from_bits(in.at("first").at(1));
  return out;
}

}  // namespace hone::cuda
