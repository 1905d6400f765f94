// The trusted code of a task, compiled and loaded into this process.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "contract/task.h"
#include "contract/task_error.h"
#include "contract/task_frame.h"

namespace hone {
namespace {

struct LibraryCloser {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

class LoadedCode : public TaskCode {
 public:
  LoadedCode(Library library, std::string where) : library_(std::move(library)), where_(std::move(where)) {
    oracle_ = symbol("hone_oracle");
    inputs_ = symbol("hone_inputs");
    regions_ = symbol("hone_regions");
  }

  bool has_oracle() const { return oracle_ != nullptr; }
  bool has_inputs() const { return inputs_ != nullptr; }

  Result<> fill(const Workload& workload, const InputSet& set, std::uint64_t seed, std::uint32_t call,
                const std::vector<HostTensor>& tensors) const override {
    TaskFrame frame(workload, set.name, seed, call);
    HONE_CHECK(frame.attach(workload, tensors));
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      const TensorShape& shape = workload.tensors[i];
      if (shape.role == TensorRole::output) continue;
      const auto distribution = set.inputs.find(shape.name);
      if (distribution == set.inputs.end()) return fail(ErrorKind::internal, "input set {} lacks {}", set.name, shape.name);
      fill_tensor(shape, distribution->second, seed, static_cast<std::uint32_t>(i), call, static_cast<std::byte*>(frame.tensor(i).data));
    }
    if (inputs_ == nullptr) return {};
    return frame.run(inputs_, what("hone_inputs", workload, set.name));
  }

  Result<Reference> oracle(const Workload& workload, const std::vector<HostTensor>& tensors) const override {
    const std::string none;
    TaskFrame frame(workload, none, 0, 0);
    HONE_CHECK(frame.attach(workload, tensors));
    Reference reference;
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      const TensorShape& shape = workload.tensors[i];
      if (shape.role == TensorRole::input) continue;
      std::vector<double>& values = reference[shape.name];
      values.assign(static_cast<std::size_t>(shape.elements()), std::numeric_limits<double>::quiet_NaN());
      frame.tensor(i).reference = values.data();
    }
    HONE_CHECK(frame.run(oracle_, what("hone_oracle", workload, none)));
    HONE_TRY(const Regions regions, this->regions(workload, tensors));
    for (const TensorShape& shape : workload.tensors)
      if (shape.role != TensorRole::input) HONE_CHECK(check(workload, shape, regions.at(shape.name), reference[shape.name]));
    return reference;
  }

  Result<Regions> regions(const Workload& workload, const std::vector<HostTensor>& tensors) const override {
    const std::string none;
    TaskFrame frame(workload, none, 0, 0);
    if (regions_ != nullptr) HONE_CHECK(frame.attach(workload, tensors));
    return frame.regions(workload, regions_, what("hone_regions", workload, none));
  }

 private:
  TaskEntry symbol(const char* name) const { return reinterpret_cast<TaskEntry>(dlsym(library_.get(), name)); }

  std::string what(const char* entry, const Workload& workload, const std::string& set) const {
    return fmt::format("{}: {} of workload {}{}", where_, entry, workload.id, set.empty() ? "" : ", input set " + set);
  }

  // Every valid element has a number; padding becomes zero.
  Result<> check(const Workload& workload, const TensorShape& shape, const std::vector<Region>& regions, std::vector<double>& values) const {
    const std::int64_t width = shape.shape.back();
    std::int64_t padding = 0;
    const auto clear = [&](std::int64_t begin, std::int64_t end) { std::fill(values.begin() + begin * width, values.begin() + end * width, 0.0); };
    for (const Region& region : regions) {
      clear(padding, region.begin);
      padding = region.end;
      for (std::int64_t at = region.begin * width; at < region.end * width; ++at)
        if (std::isnan(values[static_cast<std::size_t>(at)]))
          return fail(ErrorKind::contract, "{}: {} row {} column {} was not filled in, or is NaN", what("hone_oracle", workload, ""),
                      shape.name, at / width, at % width);
    }
    clear(padding, rows_of(shape));
    return {};
  }

  Library library_;
  std::string where_;
  TaskEntry oracle_ = nullptr, inputs_ = nullptr, regions_ = nullptr;
};

}  // namespace

void for_device(CompileRequest& request, const std::string& architecture) {
  if (!request.entry.ends_with(".cu")) return;
  request.compiler = "nvcc";
  request.architecture = architecture;
}

Error error_of_task(const Task& task, std::string_view part, const fs::path& folder, Error error) {
  if (exit_code_of(error.kind) >= 3) return error;
  error.kind = ErrorKind::contract;
  error.message = fmt::format("task {}: {}: {}", task.name, part, error.message);
  std::error_code code;
  if (std::string& file = error.place.file; !file.empty() && fs::path(file).is_relative() && fs::exists(folder / file, code))
    file = (folder / file).string();
  return error;
}

Result<Artifact> compile_task_code(const Task& task, const Toolchain& toolchain, const std::string& architecture) {
  CompileRequest request;
  // Only what it can include: a change of the gate, say, compiles nothing anew.
  for (const auto& [name, text] : task.files)
    if (name == task.oracle || name.ends_with(".h") || name.ends_with(".hpp") || name.ends_with(".cuh")) request.sources[name] = text;
  request.entry = task.oracle;
  request.trusted = true;
  for_device(request, architecture);
  // What hone_inputs makes must not depend on the machine.
  if (request.compiler == "nvcc") request.flags = {"-Xcompiler=-ffp-contract=off", "--fmad=false"};
  else request.flags = {"-ffp-contract=off"};
  auto artifact = toolchain.compile(request);
  if (!artifact) return fail(error_of_task(task, "task code", task.folder, std::move(artifact).error()));
  return artifact;
}

Result<std::shared_ptr<TaskCode>> TaskCode::load(const Task& task, const Toolchain& toolchain) {
  HONE_TRY(const Artifact artifact, compile_task_code(task, toolchain, "cpu"));
  const std::string where = (task.folder / task.oracle).string();
  // For good: each carries its own C++ runtime, whose emergency pool would be lost at every unloading.
  Library library(dlopen(artifact.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
  if (library == nullptr) {
    const char* reason = dlerror();
    return fail(make_error(ErrorKind::contract, "cannot load the compiled task code: {}", reason == nullptr ? "unknown" : reason).at({where, 0, 0}));
  }
  auto code = std::make_shared<LoadedCode>(std::move(library), where);
  if (!code->has_oracle())
    return fail(make_error(ErrorKind::contract, "the task code has no hone_oracle").at({where, 0, 0})
                    .with_hint("include <hone/task.h> and define void hone_oracle(const hone::TaskCall* call)"));
  for (const InputSet& set : task.input_sets)
    for (const auto& [name, distribution] : set.inputs)
      if (distribution.kind == Distribution::Kind::structured && !code->has_inputs())
        return fail(make_error(ErrorKind::contract, "{} is structured, and the task code has no hone_inputs", name).at({where, 0, 0})
                        .with_hint("give it a distribution in task.yaml, or define hone_inputs"));
  return std::shared_ptr<TaskCode>(std::move(code));
}

}  // namespace hone
