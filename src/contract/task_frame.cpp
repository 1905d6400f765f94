#include "contract/task_frame.h"

#include <algorithm>

namespace hone {
namespace {

// Thrown by TaskCall::fail through the task's code, which ends there.
struct TaskFailure {
  std::string message;
};

// Sorted, in bounds, apart from one another; empty ones (a group without rows) are dropped.
Result<> check_regions(const TensorShape& shape, std::vector<Region>& list, const std::string& what) {
  const std::int64_t rows = rows_of(shape);
  std::erase_if(list, [](const Region& each) { return each.begin == each.end; });
  std::stable_sort(list.begin(), list.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  std::int64_t free = 0;
  for (const Region& each : list) {
    if (each.begin < free || each.end < each.begin || each.end > rows)
      return fail(ErrorKind::contract, "{}: region {} of {}, rows {} to {}, {}", what, each.name, shape.name, each.begin, each.end,
                  each.end > rows         ? fmt::format("ends beyond the {} rows", rows)
                  : each.end < each.begin ? "ends before it begins"
                  : each.begin < 0        ? "begins before the first row"
                                          : "overlaps another");
    free = each.end;
  }
  if (list.empty()) return fail(ErrorKind::contract, "{}: no valid row in {}", what, shape.name);
  return {};
}

}  // namespace

std::int64_t rows_of(const TensorShape& shape) { return shape.elements() / shape.shape.back(); }

TaskFrame::TaskFrame(const Workload& workload, const std::string& input_set, std::uint64_t seed, std::uint32_t call) {
  for (const auto& [name, values] : workload.axes)
    axes_.push_back({name.c_str(), static_cast<std::int64_t>(values.size()), values.data()});
  tensors_.reserve(workload.tensors.size());
  for (const TensorShape& each : workload.tensors)
    tensors_.push_back({each.name.c_str(), each.dtype, static_cast<std::int32_t>(each.shape.size()), each.shape.data(),
                        each.strides.data(), nullptr, nullptr});
  call_.workload = workload.id.c_str();
  call_.input_set = input_set.c_str();
  call_.axis_count = static_cast<std::int32_t>(axes_.size());
  call_.axes = axes_.data();
  call_.tensor_count = static_cast<std::int32_t>(tensors_.size());
  call_.tensors = tensors_.data();
  call_.seed = seed;
  call_.call = call;
  call_.workers = 1;
  call_.sink = this;
  call_.add_region = [](void* sink, const char* tensor, const char* name, std::int64_t begin, std::int64_t end) {
    static_cast<TaskFrame*>(sink)->regions_.push_back({tensor, {name, begin, end}});
  };
  call_.fail = [](void*, const char* message) { throw TaskFailure{message}; };
}

Result<> TaskFrame::attach(const Workload& workload, const std::vector<HostTensor>& buffers) {
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const TensorShape& shape = workload.tensors[i];
    if (shape.role == TensorRole::output) continue;
    const auto found = std::find_if(buffers.begin(), buffers.end(), [&](const HostTensor& each) { return each.shape.name == shape.name; });
    if (found == buffers.end() || found->data == nullptr)
      return fail(ErrorKind::internal, "no buffer for the input {} of workload {}", shape.name, workload.id);
    tensors_[i].data = found->data;
  }
  return {};
}

Result<> TaskFrame::run(const std::function<void(const TaskCall*)>& entry, const std::string& what) {
  try {
    entry(&call_);
    return {};
  } catch (const TaskFailure& failure) {
    return fail(ErrorKind::contract, "{}: {}", what, failure.message);
  } catch (const std::exception& exception) {
    return fail(ErrorKind::contract, "{}: {}", what, exception.what());
  } catch (...) {
    return fail(ErrorKind::contract, "{}: an exception of unknown type", what);
  }
}

Result<Regions> TaskFrame::regions(const Workload& workload, TaskEntry entry, const std::string& what) {
  Regions out;
  for (const TensorShape& shape : workload.tensors)
    if (shape.role != TensorRole::input) out[shape.name] = {};
  if (entry != nullptr) {
    regions_.clear();
    HONE_CHECK(run(entry, what));
    for (auto& [tensor, region] : regions_) {
      const auto found = out.find(tensor);
      if (found == out.end()) return fail(ErrorKind::contract, "{}: \"{}\" is no output", what, tensor);
      found->second.push_back(std::move(region));
    }
  }
  for (const TensorShape& shape : workload.tensors) {
    if (shape.role == TensorRole::input) continue;
    std::vector<Region>& list = out[shape.name];
    if (list.empty()) list.push_back({"all", 0, rows_of(shape)});
    HONE_CHECK(check_regions(shape, list, what));
  }
  return out;
}

}  // namespace hone
