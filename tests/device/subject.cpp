#include "device/subject.h"

namespace hone::testing {

PlanArg tensor_arg(const std::string& name) {
  PlanArg arg;
  arg.kind = ArgKind::tensor;
  arg.tensor = name;
  return arg;
}

PlanArg workspace_arg(std::size_t index) {
  PlanArg arg;
  arg.kind = ArgKind::workspace;
  arg.index = index;
  return arg;
}

PlanArg i64_arg(std::int64_t value) {
  PlanArg arg;
  arg.kind = ArgKind::i64;
  arg.bits = static_cast<std::uint64_t>(value);
  return arg;
}

PlanLaunch launch_of(const std::string& kernel, std::vector<PlanArg> args, Extent3 grid, std::int64_t shared) {
  PlanLaunch launch;
  launch.kernel = kernel;
  launch.args = std::move(args);
  launch.grid = grid;
  launch.shared_bytes = shared;
  return launch;
}

Plan plan_of(std::vector<PlanStep> steps, std::vector<PlanWorkspace> workspaces) {
  Plan plan;
  plan.modules = {{"kernel.cpp", {}}};
  plan.workspaces = std::move(workspaces);
  plan.launches = std::move(steps);
  return plan;
}

TensorShape vector_of(const std::string& name, TensorRole role, std::int64_t n, DType dtype) {
  TensorShape tensor;
  tensor.name = name;
  tensor.role = role;
  tensor.dtype = dtype;
  tensor.shape = {n};
  tensor.strides = {1};
  return tensor;
}

Workload workload_of(std::vector<TensorShape> tensors) {
  Workload workload;
  workload.id = "w";
  workload.axes["n"] = {tensors.front().shape.front()};
  workload.tensors = std::move(tensors);
  return workload;
}

}  // namespace hone::testing
