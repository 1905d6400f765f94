#include "device/cpu/session.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace hone::cpu {
namespace {

constexpr std::size_t kManyBytes = std::size_t{256} << 20, kTooManyBytes = std::size_t{1} << 30;
constexpr std::uint64_t kDefaultMemory = std::uint64_t{2} << 30;
constexpr double kGrace = 0.05;             // of CPU time, for threads to fall asleep after a call
constexpr double kStarved = 2;              // of wall time, should they get no core
constexpr double kOutsideAllowance = 60e-6; // CPU time that a worker may use to wake up and to fall asleep
constexpr double kAsleepAllowance = 5e-6;   // CPU time while nothing was asked
constexpr double kAsleepLimit = 1e-3;
constexpr double kPollPeriod = 5e-6;

Error late(std::string message) {
  return Error{ErrorKind::late_work, std::move(message)}.with_hint(
      "everything that a kernel does is done when its launches have returned");
}

// splitmix64
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// As many places for each buffer as memory allows without waste.
std::size_t slots_for(const Workload& workload) {
  std::size_t inputs = 0, outputs = 0;
  for (const TensorShape& tensor : workload.tensors)
    (tensor.role == TensorRole::input ? inputs : outputs) += tensor.bytes();
  const std::size_t larger = std::max(inputs, outputs);
  return larger <= kManyBytes ? 3 : larger <= kTooManyBytes ? 2 : 1;
}

void rest(double seconds, bool spin) {
  if (spin) {
    for (const double start = now_s(); now_s() - start < seconds;) pause_core();
    return;
  }
  const timespec time = {0, static_cast<long>(seconds * 1e9)};
  ::nanosleep(&time, nullptr);
}

Result<> check_program(const Executable& program, const Workload& workload) {
  const Plan& plan = program.plan;
  if (program.modules.size() != plan.modules.size() || program.entry.size() != plan.launches.size())
    return fail(ErrorKind::internal, "{}: modules or entries do not fit its plan", program.name);
  const auto known = [&](const std::string& name) {
    return std::any_of(workload.tensors.begin(), workload.tensors.end(),
                       [&](const TensorShape& tensor) { return tensor.name == name; });
  };
  for (const PlanStep& step : plan.launches) {
    bool fits = true;
    if (const auto* launch = std::get_if<PlanLaunch>(&step)) {
      fits = launch->module < program.modules.size() && launch->shared_bytes >= 0;
      for (const std::int64_t extent : launch->grid) fits = fits && extent >= 1 && extent <= 0x7fffffff;
      for (const PlanArg& arg : launch->args) {
        if (arg.kind == ArgKind::tensor_map)
          return fail(ErrorKind::plan, "{}: the CPU device has no tensor maps", program.name);
        if (arg.kind == ArgKind::tensor) fits = fits && known(arg.tensor);
        if (arg.kind == ArgKind::workspace) fits = fits && arg.index < plan.workspaces.size();
      }
    } else {
      const auto& memset = std::get<PlanMemset>(step);
      fits = memset.tensor.empty() ? memset.workspace < plan.workspaces.size() : known(memset.tensor);
    }
    if (!fits) return fail(ErrorKind::internal, "{}: its plan was not validated", program.name);
  }
  return {};
}

}  // namespace

void RunnerPool::prepare(std::shared_ptr<SharedMemory> inputs) {
  if (inputs_ == inputs && (spare_ || starting_.valid())) return;
  settle();
  spare_.reset();
  inputs_ = std::move(inputs);
  starting_ = std::async(std::launch::async, [this] { return Runner::start(setup_, *inputs_); });
}

void RunnerPool::settle() {
  if (starting_.valid()) spare_ = starting_.get();
}

Result<std::unique_ptr<Runner>> RunnerPool::take(const std::shared_ptr<SharedMemory>& inputs) {
  prepare(inputs);
  settle();
  Result<std::unique_ptr<Runner>> taken = *std::move(spare_);
  spare_.reset();
  // One that died while it started or waited is no candidate's fault.
  if (taken ? !(*taken)->running() : taken.error().kind == ErrorKind::device) return Runner::start(setup_, *inputs);
  return taken;
}

Result<std::shared_ptr<SharedMemory>> RunnerPool::inputs() {
  settle();
  if (inputs_ != nullptr && inputs_.use_count() == 1) return inputs_;
  HONE_TRY(SharedMemory memory, SharedMemory::create("hone-inputs"));
  return std::make_shared<SharedMemory>(std::move(memory));
}

Result<std::unique_ptr<Session>> CpuSession::open(std::shared_ptr<Machine> machine, const SessionSpec& spec) {
  std::unique_ptr<CpuSession> session(new CpuSession(std::move(machine), spec));
  HONE_CHECK(session->set_up());
  return std::unique_ptr<Session>(std::move(session));
}

Result<> CpuSession::set_up() {
  secret_ = random_seed();
  canary_.resize(kPage);
  for (std::size_t i = 0; i < kPage; i += 8) {
    const std::uint64_t word = mix(secret_ ^ mix(i));
    std::memcpy(canary_.data() + i, &word, 8);
  }
  const std::size_t slots = slots_for(spec_.workload);
  input_layout_ = std::make_unique<Layout>(slots);
  for (const TensorShape& tensor : spec_.workload.tensors) {
    if (tensor.shape.size() != tensor.strides.size() || tensor.bytes() == 0)
      return fail(ErrorKind::contract, "workload {}: tensor {} is empty", spec_.workload.id, tensor.name);
    staged_.emplace_back(tensor.role == TensorRole::output ? 0 : tensor.bytes());
    input_index_.push_back(0);
    if (tensor.role != TensorRole::input) continue;
    input_index_.back() = input_layout_->add(
        {tensor.name, tensor.bytes(), static_cast<std::size_t>(std::max<std::int64_t>(tensor.alignment, 1)), {}, true});
  }
  HONE_TRY(input_memory_, machine_->pool.inputs());
  HONE_CHECK(input_memory_->resize(input_layout_->bytes(), input_layout_->guards()));
  if (input_layout_->bytes() != 0) input_layout_->write_canaries(input_memory_->data(), canary_);
  machine_->pool.prepare(input_memory_);
  return {};
}

CpuSession::~CpuSession() = default;

nlohmann::json CpuSession::add_buffers(Loaded& loaded, const std::vector<PlanWorkspace>& workspaces) const {
  const std::size_t slots = input_layout_->slots();
  nlohmann::json buffers = nlohmann::json::array();
  // Inputs and outputs rotate by themselves: a slot of a call is a pair.
  const auto describe = [&](const char* arena, const Layout& layout, std::size_t index, bool input) {
    nlohmann::json offsets = nlohmann::json::array();
    for (std::size_t pair = 0; pair < slots * slots; ++pair)
      offsets.push_back(layout.offset(index, input ? pair / slots : pair % slots));
    buffers.push_back({{"arena", arena}, {"offset", std::move(offsets)}});
  };
  loaded.layout = std::make_unique<Layout>(slots);
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i) {
    const TensorShape& tensor = spec_.workload.tensors[i];
    Buffer buffer;
    buffer.element = size_of(tensor.dtype);
    if (tensor.role == TensorRole::input) {
      buffer.use = Use::input;
      buffer.index = input_index_[i];
      describe("input", *input_layout_, buffer.index, true);
    } else {
      buffer.use = tensor.role == TensorRole::output ? Use::output : Use::persistent;
      buffer.pristine = staged_[i].empty() ? nullptr : staged_[i].data();
      buffer.index = loaded.layout->add({tensor.name, tensor.bytes(),
                                         static_cast<std::size_t>(std::max<std::int64_t>(tensor.alignment, 1)),
                                         runs_of(tensor), true});
      describe("own", *loaded.layout, buffer.index, false);
    }
    loaded.buffers.push_back(buffer);
  }
  for (const PlanWorkspace& workspace : workspaces) {
    Buffer buffer;
    buffer.use = workspace.zeroed ? Use::zeroed : Use::workspace;
    buffer.index = loaded.layout->add(
        {workspace.name, static_cast<std::size_t>(std::max<std::int64_t>(workspace.bytes, 1)), kPage, {}, true});
    describe("own", *loaded.layout, buffer.index, false);
    loaded.buffers.push_back(buffer);
  }
  return buffers;
}

Result<ProgramId> CpuSession::load(const Executable& program) {
  HONE_CHECK(check_program(program, spec_.workload));
  auto loaded = std::make_unique<Loaded>();
  loaded->labels.program = program.name;
  loaded->trusted = program.trusted;
  nlohmann::json blob = {{"native", false}, {"buffers", add_buffers(*loaded, program.plan.workspaces)}};
  std::vector<fs::path> objects;
  for (std::size_t i = 0; i < program.modules.size(); ++i) {
    objects.push_back(program.modules[i].path);
    loaded->labels.sources.push_back(program.plan.modules[i].source);
  }
  const std::size_t tensors = spec_.workload.tensors.size();
  const auto tensor_index = [&](const std::string& name) {
    std::size_t i = 0;
    while (spec_.workload.tensors[i].name != name) ++i;
    return i;
  };
  std::int64_t shared_bytes = 0;
  blob["steps"] = nlohmann::json::array();
  for (std::size_t i = 0; i < program.plan.launches.size(); ++i) {
    if (const auto* launch = std::get_if<PlanLaunch>(&program.plan.launches[i])) {
      nlohmann::json args = nlohmann::json::array();
      for (const PlanArg& arg : launch->args) {
        if (arg.kind == ArgKind::tensor) args.push_back({{"buffer", tensor_index(arg.tensor)}});
        else if (arg.kind == ArgKind::workspace) args.push_back({{"buffer", tensors + arg.index}});
        else args.push_back({{"kind", name_of(arg.kind)}, {"bits", arg.bits}});
      }
      blob["steps"].push_back({{"object", launch->module},
                               {"entry", program.entry[i].offset},
                               {"grid", launch->grid},
                               {"shared", launch->shared_bytes},
                               {"args", std::move(args)}});
      loaded->labels.steps.push_back({launch->kernel, launch->grid[0], launch->grid[1]});
      shared_bytes = std::max(shared_bytes, launch->shared_bytes);
    } else {
      const auto& memset = std::get<PlanMemset>(program.plan.launches[i]);
      const std::size_t buffer = memset.tensor.empty() ? tensors + memset.workspace : tensor_index(memset.tensor);
      blob["steps"].push_back({{"memset", buffer},
                               {"bytes", loaded->layout->spec(loaded->buffers[buffer].index).bytes},
                               {"value", memset.value}});
      loaded->labels.steps.emplace_back();
    }
  }
  blob["shared"] = nlohmann::json::array();
  if (shared_bytes > 0) {
    for (std::size_t worker = 0; worker < machine_->topology.worker_cores.size(); ++worker) {
      const std::size_t index = loaded->layout->add(
          {fmt::format("shared memory of worker {}", worker), static_cast<std::size_t>(shared_bytes), 64, {}, false});
      if (worker == 0) loaded->scratch = index;
      blob["shared"].push_back(loaded->layout->offset(index, 0));
    }
  }
  return start(std::move(loaded), std::move(blob), objects);
}

Result<ProgramId> CpuSession::load(const NativeBaseline& baseline) {
  auto loaded = std::make_unique<Loaded>();
  loaded->labels.program = baseline.name;
  loaded->labels.native = true;
  loaded->labels.sources = {baseline.path.filename().string()};
  nlohmann::json blob = {{"native", true}, {"buffers", add_buffers(*loaded, {})}, {"shared", nlohmann::json::array()}};
  nlohmann::json axes = nlohmann::json::array(), tensors = nlohmann::json::array();
  for (const auto& [name, values] : spec_.workload.axes) axes.push_back({{"name", name}, {"values", values}});
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i) {
    const TensorShape& tensor = spec_.workload.tensors[i];
    tensors.push_back({{"name", tensor.name},
                       {"dtype", static_cast<int>(tensor.dtype)},
                       {"shape", tensor.shape},
                       {"strides", tensor.strides},
                       {"buffer", i}});
  }
  blob["task"] = {{"workload", spec_.workload.id},
                  {"axes", std::move(axes)},
                  {"tensors", std::move(tensors)},
                  {"workers", machine_->topology.worker_cores.size()}};
  return start(std::move(loaded), std::move(blob), {baseline.path});
}

Result<ProgramId> CpuSession::start(std::unique_ptr<Loaded> loaded, nlohmann::json blob,
                                    const std::vector<fs::path>& objects) {
  HONE_TRY(loaded->runner, machine_->pool.take(input_memory_));
  machine_->pool.prepare(input_memory_);
  Runner& runner = *loaded->runner;
  blob["objects"] = nlohmann::json::array();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    HONE_TRY(std::string inside, runner.place(objects[i], fmt::format("{}.so", i)));
    blob["objects"].push_back(std::move(inside));
  }
  blob["slots"] = input_layout_->slots() * input_layout_->slots();
  for (const auto& [name, layout] :
       {std::pair<const char*, const Layout*>{"input", input_layout_.get()}, {"own", loaded->layout.get()}}) {
    blob["guards"][name] = nlohmann::json::array();
    for (const Run& guard : layout->guards()) blob["guards"][name].push_back({guard.begin, guard.bytes});
  }
  const std::string text = blob.dump();
  const std::size_t blob_offset = loaded->layout->bytes();
  HONE_CHECK(runner.arena().resize((blob_offset + text.size() + kPage - 1) / kPage * kPage, loaded->layout->guards()));
  HONE_CHECK(runner.arena().seal());
  std::memcpy(runner.arena().data() + blob_offset, text.data(), text.size());
  loaded->layout->write_canaries(runner.arena().data(), canary_);
  loaded->labels.objects = objects;
  loaded->labels.inputs = input_layout_.get();
  loaded->labels.own = loaded->layout.get();
  // A baseline may build its library's plans, and look at the tensors, when it is opened.
  refill(*loaded);
  Runner::Order order;
  order.blob_offset = blob_offset;
  order.blob_bytes = text.size();
  order.input_bytes = input_memory_->size();
  order.memory_bytes = spec_.memory_bytes != 0 ? spec_.memory_bytes : kDefaultMemory;
  order.timeout_s = spec_.load_timeout_s;
  if (auto fault = runner.load(order, loaded->labels)) return fail(*std::move(fault));
  if (loaded->labels.native) {
    const char* text_at = runner.control().description;
    loaded->description.assign(text_at, ::strnlen(text_at, sizeof runner.control().description));
  }
  if (!await_sleep(*loaded) && !loaded->labels.native)
    return fail(late(fmt::format("{} is busy although nothing was asked of it", loaded->labels.program)));
  loaded->idle_cpu_s = runner.cpu_s().value_or(0);
  programs_.push_back(std::move(loaded));
  return programs_.size() - 1;
}

void CpuSession::unload(ProgramId id) {
  if (id < programs_.size()) programs_[id].reset();
}

Result<CpuSession::Loaded*> CpuSession::find(ProgramId id) {
  if (id >= programs_.size() || programs_[id] == nullptr)
    return fail(ErrorKind::internal, "the device has no program {} loaded", id);
  return programs_[id].get();
}

std::vector<HostTensor> CpuSession::inputs() {
  std::vector<HostTensor> out;
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i)
    if (!staged_[i].empty()) out.push_back({spec_.workload.tensors[i], staged_[i].data()});
  return out;
}

Result<> CpuSession::commit_inputs() {
  input_slot_ = (input_slot_ + 1) % static_cast<std::uint32_t>(input_layout_->slots());
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    if (spec_.workload.tensors[i].role != TensorRole::input) continue;
    std::memcpy(input_memory_->data() + input_layout_->offset(input_index_[i], input_slot_), staged_[i].data(),
                staged_[i].size());
  }
  return {};
}

// Runners have the inputs' memory mapped for reading, from a descriptor that was opened for reading.
Result<bool> CpuSession::inputs_intact() { return true; }

std::byte* CpuSession::bytes_of(const Loaded& loaded, const Buffer& buffer, std::size_t slot) const {
  return loaded.runner->arena().data() + loaded.layout->offset(buffer.index, slot);
}

std::vector<std::span<const std::byte>> CpuSession::used_by(const Loaded& loaded) const {
  std::vector<std::span<const std::byte>> out;
  for (const Buffer& buffer : loaded.buffers) {
    if (buffer.use == Use::input)
      out.emplace_back(input_memory_->data() + input_layout_->offset(buffer.index, input_slot_), input_layout_->spec(buffer.index).bytes);
    else
      out.emplace_back(bytes_of(loaded, buffer, loaded.slot), loaded.layout->spec(buffer.index).bytes);
  }
  if (!loaded.scratch) return out;
  for (std::size_t index = *loaded.scratch; index < loaded.layout->count(); ++index)
    out.emplace_back(loaded.runner->arena().data() + loaded.layout->offset(index, 0), loaded.layout->spec(index).bytes);
  return out;
}

void CpuSession::refill(Loaded& loaded) {
  for (std::size_t i = 0; i < loaded.buffers.size(); ++i) {
    Buffer& buffer = loaded.buffers[i];
    if (buffer.use == Use::input) continue;
    std::byte* at = bytes_of(loaded, buffer, loaded.slot);
    const BufferSpec& spec = loaded.layout->spec(buffer.index);
    const std::uint64_t random = mix(secret_ + ++draws_);
    switch (buffer.use) {
      case Use::output:
        buffer.poison = poison_pattern(spec_.workload.tensors[i].dtype, random);
        fill_pattern(at, spec.bytes, spec.runs, buffer.poison, buffer.element);
        break;
      case Use::persistent:
        for (const Run& run : spec.runs) std::memcpy(at + run.begin, buffer.pristine + run.begin, run.bytes);
        break;
      case Use::zeroed:
        std::memset(at, 0, spec.bytes);
        break;
      default:   // NaN as whatever floating type it is read
        fill_pattern(at, spec.bytes, spec.runs, 0x7ff87ff87ff87ff8u | (random & 0x8007800780078007u), 8);
    }
  }
  if (!loaded.scratch) return;
  for (std::size_t index = *loaded.scratch; index < loaded.layout->count(); ++index) {
    const BufferSpec& spec = loaded.layout->spec(index);
    fill_pattern(loaded.runner->arena().data() + loaded.layout->offset(index, 0), spec.bytes, spec.runs,
                 0x7ff87ff87ff87ff8u | (mix(secret_ + ++draws_) & 0x8007800780078007u), 8);
  }
}

// A thread that waits for a core looks as busy as one that has it: CPU time tells them apart.
bool CpuSession::await_sleep(const Loaded& loaded) const {
  const double start_s = now_s();
  const auto used = loaded.runner->cpu_s();
  for (; !loaded.runner->asleep(); rest(kPollPeriod, !machine_->topology.clock_core_shared)) {
    const double waited_s = now_s() - start_s;
    if (waited_s <= kGrace) continue;
    const auto now = loaded.runner->cpu_s();
    if (waited_s > kStarved || !used || !now || *now - *used > kGrace) return false;
  }
  return true;
}

// A baseline's library may let its threads spin for a while after it has returned.
void CpuSession::await_quiet() const {
  for (const auto& each : programs_)
    if (each != nullptr) await_sleep(*each);
}

// Between calls every thread sleeps and its CPU clock stands still.
void CpuSession::check_asleep(Loaded& loaded) {
  if (loaded.fault || loaded.labels.native) return;
  const bool asleep = loaded.runner->asleep();
  const auto now = loaded.runner->cpu_s();
  if (!now) return;   // it died; the next call says how
  const double used = *now - loaded.idle_cpu_s;
  loaded.idle_cpu_s = *now;
  if (used > kAsleepAllowance) loaded.owed_s += used;
  if (!asleep) loaded.fault = late(fmt::format("{} is busy between two calls", loaded.labels.program));
  else if (!loaded.runner->at_rest())
    loaded.fault = late(fmt::format("{} keeps a worker to itself between two calls", loaded.labels.program));
  else if (used > kAsleepLimit)
    loaded.fault = suspect(
        loaded, fmt::format("{} used {:.3f} ms of CPU time between two calls", loaded.labels.program, used * 1e3));
}

// CPU time at the wrong moment can be the machine's doing; it is charged for in any case. No amount of it says that a
// trusted baseline cheats.
std::optional<Error> CpuSession::suspect(Loaded& loaded, std::string reason) {
  if (loaded.trusted || !loaded.suspicion.raise()) return std::nullopt;
  return late(std::move(reason));
}

void CpuSession::lay(std::optional<Tripwires>& tripwires, const Loaded& loaded) {
  std::vector<TripwireBuffer> read, written;
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i) {
    const Buffer& buffer = loaded.buffers[i];
    const BufferSpec& spec = loaded.layout->spec(buffer.index);
    if (buffer.use == Use::input)
      read.push_back({input_memory_->data() + input_layout_->offset(buffer.index, input_slot_),
                      input_layout_->spec(buffer.index).bytes, 1, {}});
    else written.push_back({bytes_of(loaded, buffer, loaded.slot), spec.bytes, buffer.element, spec.runs});
  }
  tripwires.emplace(read, written, [&] { return mix(secret_ + ++draws_); });
}

std::optional<Error> CpuSession::ring(Loaded& loaded, CallResult& result, std::optional<Tripwires>& tripwires) {
  Runner& runner = *loaded.runner;
  Doorbell& bell = runner.control().bell;
  const Patience patience = machine_->topology.clock_core_shared ? Patience::sleep : Patience::spin;
  const std::uint32_t number = ++loaded.calls;
  bell.slot.store(input_slot_ * static_cast<std::uint32_t>(input_layout_->slots()) + loaded.slot,
                  std::memory_order_relaxed);
  // Whatever the program has left there, a `go` for this call above all: its workers sleep in their seats, and nothing of
  // it runs, and so writes these words, until the real one.
  for (Word* word : {&bell.armed, &bell.go, &bell.done}) word->store(number - 1, std::memory_order_release);
  const double rung = now_s();
  set(bell.call, number, Patience::sleep);
  double stalled_s = now_s() - rung;
  if (auto fault = runner.wait(bell.armed, number, patience, spec_.call_timeout_s, loaded.labels)) return fault;
  if (tripwires && !tripwires->reveal())
    return late(fmt::format("{} wrote an output before its launches had begun", loaded.labels.program));
  const double begin = now_s();
  stalled_s += runner.stalled_s() + (begin - runner.looked_s());
  set(bell.go, number, patience);
  if (auto fault = runner.wait(bell.done, number, patience, spec_.call_timeout_s, loaded.labels)) return fault;
  const double end = now_s();
  if (tripwires) tripwires->ended();
  result.seconds = end - begin;
  if (loaded.labels.native) return std::nullopt;

  if (!await_sleep(loaded))
    return late(fmt::format("{} was still busy after it had reported the end of its launches", loaded.labels.program));
  if (tripwires && !tripwires->unchanged())
    return late(fmt::format("{} wrote an output after it had reported the end of its launches",
                            loaded.labels.program));
  const auto latest = runner.cpu_s();
  if (!latest) return runner.wait(bell.call, 0, Patience::sleep, 0, loaded.labels);   // it died after the end
  const auto workers = static_cast<double>(machine_->topology.worker_cores.size());
  const double used = *latest - std::exchange(loaded.idle_cpu_s, *latest), allowed = kOutsideAllowance * workers;
  // Every worker runs from `go` to `done`. What it used beyond that is what waking up and falling asleep
  // takes, and spinning while this thread was kept from ringing, or hidden work: that is charged.
  const double outside = used - workers * (result.seconds + stalled_s);
  // Of several workers one may have waited for another's core to be free; but none can have used more
  // than the time from the ring to the end.
  result.extra_cpu_s =
      std::max(0.0, workers == 1 && patience == Patience::spin ? outside - allowed : used - workers * (end - rung));
  if (patience == Patience::spin)
    result.seconds += std::max(0.0, outside - allowed) + std::exchange(loaded.owed_s, 0.0);
  if (result.extra_cpu_s > allowed)
    return suspect(loaded, fmt::format("{} works outside the span from the start to the reported end of its launches, "
                                       "with {:.3f} ms of CPU time the last time",
                                       loaded.labels.program, result.extra_cpu_s * 1e3));
  loaded.suspicion.lower();
  return std::nullopt;
}

Result<CallResult> CpuSession::call(ProgramId id, const CallOptions& options) {
  HONE_TRY(Loaded* loaded, find(id));
  CallResult result;
  check_asleep(*loaded);
  if (!loaded->fault) loaded->fault = loaded->runner->check(0, 1, loaded->labels);
  if (!loaded->fault) {
    loaded->slot = (loaded->slot + 1) % static_cast<std::uint32_t>(loaded->layout->slots());
    refill(*loaded);
    std::optional<Tripwires> tripwires;
    if (!loaded->labels.native) lay(tripwires, *loaded);
    Pin pin;
    if (options.timed) {
      machine_->pool.settle();
      await_quiet();
      machine_->flusher.flush(pin, used_by(*loaded));
    } else {
      pin.to(machine_->topology.clock_core);
    }
    loaded->fault = ring(*loaded, result, tripwires);
  }
  result.fault = loaded->fault;
  return result;
}

Result<std::size_t> CpuSession::own_tensor(const std::string& tensor) const {
  for (std::size_t i = 0; i < spec_.workload.tensors.size(); ++i)
    if (spec_.workload.tensors[i].name == tensor && spec_.workload.tensors[i].role != TensorRole::input) return i;
  return fail(ErrorKind::internal, "workload {} has no output or persistent tensor {}", spec_.workload.id, tensor);
}

Result<std::span<const std::byte>> CpuSession::output(ProgramId id, const std::string& tensor) {
  HONE_TRY(Loaded* loaded, find(id));
  HONE_TRY(const std::size_t index, own_tensor(tensor));
  return std::span<const std::byte>(bytes_of(*loaded, loaded->buffers[index], loaded->slot),
                                    spec_.workload.tensors[index].bytes());
}

bool CpuSession::is_poison(ProgramId id, const std::string& tensor, std::size_t offset) {
  const auto loaded = find(id);
  const auto index = own_tensor(tensor);
  if (!loaded || !index) return false;
  const Buffer& buffer = (*loaded)->buffers[*index];
  if (buffer.use != Use::output || offset + buffer.element > spec_.workload.tensors[*index].bytes()) return false;
  return std::memcmp(bytes_of(**loaded, buffer, (*loaded)->slot) + offset, &buffer.poison, buffer.element) == 0;
}

Result<std::vector<GuardDamage>> CpuSession::guards(ProgramId id) {
  HONE_TRY(Loaded* loaded, find(id));
  const bool was_well = !loaded->fault;
  check_asleep(*loaded);
  if (was_well && loaded->fault) return fail(*loaded->fault);
  return loaded->layout->check_canaries(loaded->runner->arena().data(), canary_);
}

std::string CpuSession::describe(ProgramId id) {
  const auto loaded = find(id);
  return loaded ? (*loaded)->description : std::string();
}

}  // namespace hone::cpu
