#include "judge/fake_device.h"

#include <cmath>
#include <cstring>

namespace hone::testing {

class FakeSession final : public Session {
 public:
  FakeSession(FakeDevice& device, SessionSpec spec) : device_(device), spec_(std::move(spec)) {
    for (const TensorShape& shape : spec_.workload.tensors) {
      if (shape.role == TensorRole::output) continue;
      staged_[shape.name].resize(shape.bytes());
      seen_[shape.name].resize(shape.bytes());
    }
  }

  Result<ProgramId> load(const Executable& program) override { return load(program.name); }
  Result<ProgramId> load(const NativeBaseline& baseline) override { return load(baseline.name); }

  void unload(ProgramId id) override {
    if (id < loaded_.size() && loaded_[id]) {
      note("unload", loaded_[id]->name);
      loaded_[id].reset();
    }
  }

  std::vector<HostTensor> inputs() override { return views(staged_); }

  Result<> commit_inputs() override {
    seen_ = staged_;
    intact_ = true;
    return {};
  }

  Result<bool> inputs_intact() override { return intact_; }

  Result<CallResult> call(ProgramId id, const CallOptions& options) override {
    if (id >= loaded_.size() || !loaded_[id]) return fail(ErrorKind::device, "call of program {} that is not loaded", id);
    Loaded& loaded = *loaded_[id];
    const FakeProgram& script = device_.programs_.at(loaded.name);
    note(options.timed ? "timed" : "call", loaded.name);
    loaded.poison = static_cast<std::byte>(0x80 | (device_.noise_() & 0x7f));
    for (const TensorShape& shape : spec_.workload.tensors) {
      if (shape.role == TensorRole::input) continue;
      auto& bytes = loaded.own[shape.name];
      if (shape.role == TensorRole::persistent) bytes = seen_.at(shape.name);
      else bytes.assign(shape.bytes(), loaded.poison);
    }
    const std::vector<HostTensor> inputs = views(seen_);
    FakeCall call;
    call.workload = &spec_.workload;
    call.inputs = &inputs;
    call.own = &loaded.own;
    call.number = ++loaded.calls;
    call.timed = options.timed;
    call.seconds = draw(script.time, loaded.process);
    if (script.run) script.run(call);
    if (script.modifies_inputs) intact_ = false;
    device_.clock_ += call.seconds + device_.overhead_;
    return CallResult{call.seconds, call.fault, call.extra_cpu_s};
  }

  Result<std::span<const std::byte>> output(ProgramId id, const std::string& tensor) override {
    if (id >= loaded_.size() || !loaded_[id]) return fail(ErrorKind::device, "program {} is not loaded", id);
    const auto found = loaded_[id]->own.find(tensor);
    if (found == loaded_[id]->own.end()) return fail(ErrorKind::device, "no output '{}'", tensor);
    return std::span<const std::byte>(found->second);
  }

  bool is_poison(ProgramId id, const std::string& tensor, std::size_t offset) override {
    const auto& bytes = loaded_.at(id)->own.at(tensor);
    const std::size_t size = element_size(tensor);
    for (std::size_t i = 0; i < size; ++i)
      if (bytes.at(offset + i) != loaded_[id]->poison) return false;
    return true;
  }

  Result<std::vector<GuardDamage>> guards(ProgramId id) override {
    return device_.programs_.at(loaded_.at(id)->name).damage;
  }

  nlohmann::json conditions() override {
    if (device_.conditions_.empty()) return nullptr;
    return device_.conditions_.at(std::min(device_.count("open"), device_.conditions_.size()) - 1);
  }
  std::string describe(ProgramId id) override { return device_.programs_.at(loaded_.at(id)->name).describe; }

 private:
  using Buffers = std::map<std::string, std::vector<std::byte>>;
  struct Loaded {
    std::string name;
    double process = 0;                   // this load's share of log(time)
    std::uint64_t calls = 0;
    std::byte poison{};
    Buffers own;
  };

  Result<ProgramId> load(const std::string& name) {
    const auto script = device_.programs_.find(name);
    if (script == device_.programs_.end()) return fail(ErrorKind::device, "no script for program '{}'", name);
    if (script->second.load_error) return fail(*script->second.load_error);
    note("load", name);
    auto loaded = std::make_unique<Loaded>();
    loaded->name = name;
    loaded->process = normal() * script->second.time.process_sigma;
    if (std::all_of(loaded_.begin(), loaded_.end(), [](const auto& each) { return each == nullptr; })) loaded->process += device_.first_load_;
    loaded_.push_back(std::move(loaded));
    return loaded_.size() - 1;
  }

  double normal() { return std::normal_distribution<double>()(device_.noise_); }

  double draw(const FakeTime& time, double process) {
    double seconds = time.seconds * std::exp(process + time.jitter * normal());
    if (time.tail > 0 && std::uniform_real_distribution<double>()(device_.noise_) < time.tail)
      seconds += time.seconds * std::exponential_distribution<double>(1 / time.tail_scale)(device_.noise_);
    return seconds;
  }

  std::vector<HostTensor> views(Buffers& buffers) {
    std::vector<HostTensor> out;
    for (const TensorShape& shape : spec_.workload.tensors)
      if (shape.role != TensorRole::output) out.push_back({shape, buffers.at(shape.name).data()});
    return out;
  }

  std::size_t element_size(const std::string& tensor) const {
    for (const TensorShape& shape : spec_.workload.tensors)
      if (shape.name == tensor) return size_of(shape.dtype);
    return 1;
  }

  void note(const char* what, const std::string& program) { device_.events_.push_back({what, program}); }

  FakeDevice& device_;
  SessionSpec spec_;
  Buffers staged_, seen_;
  std::vector<std::unique_ptr<Loaded>> loaded_;
  bool intact_ = true;
};

FakeDevice::FakeDevice(std::uint64_t seed) : noise_(seed) {
  info_.name = "fake";
  info_.model = "scripted";
  info_.architecture = "cpu";
  info_.cache_bytes = std::size_t{1} << 20;
  info_.memory_bytes = std::uint64_t{1} << 34;
  info_.peak_flops = 1e15;
  info_.peak_bytes = 1e15;
  info_.limits.max_workspace_bytes = std::int64_t{1} << 32;
}

std::size_t FakeDevice::count(const std::string& what, const std::string& program) const {
  std::size_t found = 0;
  for (const Event& event : events_)
    if (event.what == what && (program.empty() || event.program == program)) ++found;
  return found;
}

Result<std::unique_ptr<Session>> FakeDevice::open(const SessionSpec& spec) {
  events_.push_back({"open", spec.workload.id});
  return std::make_unique<FakeSession>(*this, spec);
}

}  // namespace hone::testing
