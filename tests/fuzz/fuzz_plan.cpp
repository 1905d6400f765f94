// Plans as JSON: whatever is read is written and read again as the same plan, and may be validated.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "program/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto plan = hone::plan_from_json(text);
  if (!plan) return 0;
  const nlohmann::json json = hone::plan_to_json(*plan);
  const auto again = hone::plan_from_json(json.dump());
  if (!again || hone::plan_to_json(*again) != json) std::abort();
  hone::ProblemShape problem;
  problem.workload = "w";
  problem.device = "cpu";
  problem.tensors = {{"x", hone::DType::f32, hone::TensorRole::input, {8}, {1}},
                     {"y", hone::DType::f32, hone::TensorRole::output, {8}, {1}}};
  hone::ProgramLimits limits;
  limits.max_workspace_bytes = limits.max_shared_bytes = 1 << 20;
  for (const bool gpu : {false, true}) {
    limits.tensor_maps = gpu;
    limits.max_block = gpu ? hone::Extent3{1024, 1024, 64} : hone::Extent3{1, 1, 1};
    limits.max_threads_per_block = gpu ? 1024 : 1;
    limits.max_cluster = gpu ? 8 : 1;
    limits.max_resident_blocks = gpu ? 264 : 0;
    (void)hone::validate(*plan, problem, limits, {"kernel.cpp"});
  }
  return 0;
}
