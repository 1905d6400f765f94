// A kernel program's launch plan as data (schema hone.plan/1, share/schema/plan.json).
#ifndef HONE_PROGRAM_PLAN_H
#define HONE_PROGRAM_PLAN_H

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "program/problem.h"

namespace hone {

struct PlanModule {
  std::string source;
  std::vector<std::pair<std::string, std::string>> defines;
  int line = 0;                   // of the call in plan.cpp, here and below; 0: unknown
};

struct PlanWorkspace {
  std::string name;
  std::int64_t bytes = 0;
  bool zeroed = false;
  int line = 0;
};

struct PlanTensorMap {
  std::string name, tensor;
  std::vector<std::int64_t> box, strides;
  std::string swizzle, l2, fill;
  int line = 0;
};

enum class ArgKind { tensor, workspace, tensor_map, i32, u32, i64, u64, f32, f64 };
std::string_view name_of(ArgKind kind);

struct PlanArg {
  ArgKind kind = ArgKind::i32;
  std::string tensor;             // kind tensor
  std::size_t index = 0;          // kinds workspace and tensor_map
  std::uint64_t bits = 0;         // scalars: the value's bytes, zero-extended
};

using Extent3 = std::array<std::int64_t, 3>;

struct PlanLaunch {
  std::size_t module = 0;
  std::string kernel;             // "gemm<128, 64>"
  Extent3 grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::int64_t shared_bytes = 0, max_registers = 0;
  bool cooperative = false, programmatic_dependent_launch = false;
  std::vector<PlanArg> args;
  int line = 0;
};

struct PlanMemset {
  std::string tensor;             // or, when empty, the workspace
  std::size_t workspace = 0;
  int value = 0;
  int line = 0;
};

using PlanStep = std::variant<PlanLaunch, PlanMemset>;

struct Plan {
  std::vector<PlanModule> modules;
  std::vector<PlanWorkspace> workspaces;
  std::vector<PlanTensorMap> tensor_maps;
  std::vector<PlanStep> launches;
};

// Limits that a plan is checked against, from the device.
struct ProgramLimits {
  Extent3 max_grid{0x7fffffff, 65535, 65535};
  Extent3 max_block{1, 1, 1};
  std::int64_t max_threads_per_block = 1;
  std::int64_t max_cluster = 1;
  std::int64_t max_shared_bytes = 0;
  std::int64_t max_workspace_bytes = 0;
  std::int64_t max_resident_blocks = 0;   // cooperative launches; 0: not supported
  bool tensor_maps = false;
  std::size_t max_modules = 32, max_steps = 256, max_args = 64;
};

// Kind plan; the error names the field: "launches[0].grid.x". The text comes from a sandboxed
// process and is hostile input.
Result<Plan> plan_from_json(std::string_view text);
nlohmann::json plan_to_json(const Plan& plan);

// Kind plan, at the line of plan.cpp where it is known: unknown tensors, sources, indices out of range, zero or too large grids, writes to
// inputs by memset, limits of the device; `sources` are the candidate's files.
Result<> validate(const Plan& plan, const ProblemShape& problem, const ProgramLimits& limits,
                  const std::vector<std::string>& sources);

}  // namespace hone

#endif
