// One call of a task's trusted code: the workload as the code sees it, what its callbacks gather, how it fails. The
// same wherever the code runs: in the judge's process, or in a device's beside the data.
#ifndef HONE_CONTRACT_TASK_FRAME_H
#define HONE_CONTRACT_TASK_FRAME_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "contract/task.h"
#include "hone/task.h"

namespace hone {

using TaskEntry = void (*)(const TaskCall*);

std::int64_t rows_of(const TensorShape& shape);

class TaskFrame {
 public:
  // Keeps pointers into both.
  TaskFrame(const Workload& workload, const std::string& input_set, std::uint64_t seed, std::uint32_t call);
  TaskFrame(const TaskFrame&) = delete;
  TaskFrame& operator=(const TaskFrame&) = delete;

  TaskTensor& tensor(std::size_t index) { return tensors_[index]; }
  TaskCall& call() { return call_; }

  // Attaches the buffers of inputs and persistent tensors by name. Kind internal: one is missing.
  Result<> attach(const Workload& workload, const std::vector<HostTensor>& buffers);
  // Kind contract: what the code says through TaskCall::fail, or throws. `what` begins the message.
  Result<> run(const std::function<void(const TaskCall*)>& entry, const std::string& what);
  // By output and persistent tensor, in order of rows, without empty ones; null `entry`: one region, "all". Kind
  // contract: out of bounds, overlapping, none.
  Result<Regions> regions(const Workload& workload, TaskEntry entry, const std::string& what);

 private:
  std::vector<TaskAxis> axes_;
  std::vector<TaskTensor> tensors_;
  std::vector<std::pair<std::string, Region>> regions_;
  TaskCall call_{};
};

}  // namespace hone

#endif
