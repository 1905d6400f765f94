// What a device must offer to be held against the contract suite: itself, and programs for it.
#ifndef HONE_TESTS_DEVICE_SUBJECT_H
#define HONE_TESTS_DEVICE_SUBJECT_H

#include <functional>
#include <memory>
#include <string>

#include "device/device.h"

namespace hone::testing {

class Subject {
 public:
  virtual ~Subject() = default;
  // Why it cannot be tested here, or empty: "no GPU".
  virtual std::string missing() const { return {}; }
  virtual Device& device() = 0;
  // What a store through a null pointer is called.
  virtual ErrorKind null_store_kind() const { return ErrorKind::crash; }
  // A program whose launches name kernels of tests/device/contract.h's table; each subject has them in
  // its own language.
  virtual Result<Executable> program(const std::string& name, Plan plan) = 0;
};
using MakeSubject = std::function<std::unique_ptr<Subject>()>;

// A kernel argument, a launch, a workload with x[n] and y[n] (f32): short to write.
PlanArg tensor_arg(const std::string& name);
PlanArg workspace_arg(std::size_t index);
PlanArg i64_arg(std::int64_t value);
PlanLaunch launch_of(const std::string& kernel, std::vector<PlanArg> args, Extent3 grid = {1, 1, 1},
                     std::int64_t shared = 0);
Plan plan_of(std::vector<PlanStep> steps, std::vector<PlanWorkspace> workspaces = {});
TensorShape vector_of(const std::string& name, TensorRole role, std::int64_t n, DType dtype = DType::f32);
Workload workload_of(std::vector<TensorShape> tensors);

}  // namespace hone::testing

#endif
