#include "device/cuda/engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"
#include "device/poison.h"

namespace hone::cuda {
namespace {

constexpr std::size_t kScratch = std::size_t{1} << 20;
constexpr std::size_t kFlushFactor = 4;              // of the L2

// splitmix64
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int tensor_map_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32: return 7;
    case DType::f16: return 6;
    case DType::bf16: return 9;
    case DType::i32: return 3;
    case DType::u32: return 2;
    case DType::i64: return 5;
    default: return 0;                               // bytes
  }
}

int index_in(const std::string& word, std::initializer_list<const char*> words) {
  int i = 0;
  for (const char* each : words) {
    if (word == each) return i;
    ++i;
  }
  return 0;
}

std::size_t bytes_of(ArgKind kind) {
  switch (kind) {
    case ArgKind::i32:
    case ArgKind::u32:
    case ArgKind::f32: return 4;
    case ArgKind::tensor_map: return sizeof(TensorMapBytes);
    default: return 8;
  }
}

std::int64_t product(const Extent3& extent) { return extent[0] * extent[1] * extent[2]; }

}  // namespace

Program::~Program() {
  for (const CUmodule module : modules) cu.module_unload(module);
}

Result<std::unique_ptr<Engine>> Engine::open(EngineSpec spec, std::function<bool()> abandoned) {
  std::unique_ptr<Engine> engine(new Engine(std::move(spec)));
  engine->abandoned_ = std::move(abandoned);
  HONE_CHECK(engine->set_up());
  return engine;
}

Engine::~Engine() = default;

std::uint64_t Engine::draw() { return mix(secret_ + ++draws_); }

Result<> Engine::set_up() {
  HONE_TRY(context_, Context::open(spec_.ordinal, spec_.helpers));
  char bus_id[64] = "";
  cu.device_bus_id(bus_id, sizeof bus_id, context_.device);
  nvml_ = std::make_unique<Nvml>(bus_id);
  secret_ = random_seed();
  for (const TensorShape& tensor : spec_.workload.tensors) {
    if (tensor.shape.empty() || tensor.shape.size() > kMaxRank || tensor.shape.size() != tensor.strides.size() || tensor.bytes() == 0)
      return fail(ErrorKind::contract, "workload {}: tensor {} is empty, or has no shape of 1 to {} axes", spec_.workload.id, tensor.name, kMaxRank);
    inputs_.emplace_back();
    input_hash_.push_back({});
    reference_.emplace_back();
    if (tensor.role == TensorRole::output) continue;
    HONE_TRY(inputs_.back(), add_buffer(tensor.name, tensor.bytes(), tensor.alignment, nullptr, tensor.role == TensorRole::input ? kAddresses : 1));
  }
  void* words = nullptr;
  CUdeviceptr device = 0;
  HONE_CHECK(check(cu.host_allocate(&words, 4096, kHostMapped), "allocating memory of the host"));
  HONE_CHECK(check(cu.host_address(&device, words, 0), "mapping memory of the host"));
  std::memset(words, 0, 4096);
  std::size_t at = 0;
  for (Signal* each : {&go_, &gave_up_, &progress_}) {
    *each = {reinterpret_cast<volatile std::uint32_t*>(static_cast<std::byte*>(words) + at), device + at};
    at += 256;
  }
  HONE_CHECK(check(cu.event_create(&begin_, 0), "making an event"));
  HONE_CHECK(check(cu.event_create(&end_, 0), "making an event"));
  flush_bytes_ = std::max(kFlushFactor * context_.l2_bytes, std::size_t{64} << 20);
  HONE_CHECK(check(cu.allocate(&flush_, flush_bytes_), "allocating memory of the GPU"));
  HONE_CHECK(check(cu.allocate(&scratch_, kScratch), "allocating memory of the GPU"));
  if (!spec_.task_code.empty()) {
    task_ = ::dlopen(spec_.task_code.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (task_ == nullptr) return fail(ErrorKind::contract, "cannot load the compiled task code: {}", ::dlerror());
    task_inputs_ = reinterpret_cast<TaskEntry>(::dlsym(task_, "hone_inputs"));
    task_oracle_ = reinterpret_cast<TaskEntry>(::dlsym(task_, "hone_oracle"));
    task_regions_ = reinterpret_cast<TaskEntry>(::dlsym(task_, "hone_regions"));
  }
  return context_.finish();
}

Result<Program*> Engine::find(ProgramId id) const {
  const auto found = programs_.find(id);
  if (found == programs_.end()) return fail(ErrorKind::internal, "the device has no program {} loaded", id);
  return found->second.get();
}

Result<std::size_t> Engine::tensor_index(const std::string& name) const {
  const auto& tensors = spec_.workload.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) return i;
  return fail(ErrorKind::internal, "workload {} has no tensor {}", spec_.workload.id, name);
}

Buffer& Engine::tensor_buffer(Program& program, std::size_t index) const {
  return program.tensors[index] != nullptr ? *program.tensors[index] : *inputs_[index];
}

Buffer& Engine::buffer_of(Program& program, const PlanArg& arg) const {
  return arg.kind == ArgKind::workspace ? *program.workspaces[arg.index] : tensor_buffer(program, *tensor_index(arg.tensor));
}

Result<std::unique_ptr<Buffer>> Engine::add_buffer(const std::string& name, std::size_t bytes, std::int64_t alignment,
                                                   const TensorShape* shape, std::size_t addresses) {
  const auto aligned = static_cast<std::size_t>(std::max<std::int64_t>(alignment, 1));
  HONE_TRY(Buffer buffer, spec_.plain ? Buffer::create_plain(name, bytes, aligned, shape)
                                      : Buffer::create(context_, name, bytes, aligned, shape, draw(), addresses));
  return std::make_unique<Buffer>(std::move(buffer));
}

Result<> Engine::add_buffers(Program& program) {
  for (const TensorShape& tensor : spec_.workload.tensors) {
    program.tensors.emplace_back();
    program.poison.push_back(0);
    if (tensor.role == TensorRole::input) continue;
    HONE_TRY(program.tensors.back(), add_buffer(tensor.name, tensor.bytes(), tensor.alignment, &tensor, kAddresses));
  }
  std::uint64_t left = spec_.memory_bytes == 0 ? ~std::uint64_t{0} : spec_.memory_bytes;
  for (const PlanWorkspace& workspace : program.plan.workspaces) {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(workspace.bytes, 1));
    if (bytes > left)
      return fail(ErrorKind::out_of_memory, "{}: its workspaces are larger than {}", program.name, format_bytes(spec_.memory_bytes));
    left -= bytes;
    HONE_TRY(std::unique_ptr<Buffer> buffer, add_buffer(workspace.name, bytes, 1024, nullptr, kAddresses));
    program.workspaces.push_back(std::move(buffer));
  }
  return {};
}

Result<> Engine::load(ProgramId id, const std::string& name, Plan plan, const std::vector<std::string>& modules,
                      const std::vector<std::string>& symbols) {
  auto program = std::make_unique<Program>();
  program->name = name;
  program->plan = std::move(plan);
  if (symbols.size() != program->plan.launches.size() || modules.size() != program->plan.modules.size())
    return fail(ErrorKind::internal, "{}: modules or entries do not fit its plan", name);
  for (const std::string& path : modules) {
    HONE_TRY(const std::string bytes, read_file(path));
    CUmodule module = nullptr;
    if (const CUresult code = cu.module_load(&module, bytes.c_str()); code != kSuccess)
      return fail(code == kOutOfMemory ? ErrorKind::out_of_memory : ErrorKind::launch, "{}: its code does not load on this GPU: {}", name, name_of_result(code));
    program->modules.push_back(module);
  }
  HONE_CHECK(add_buffers(*program));
  HONE_CHECK(resolve(*program, symbols));
  HONE_CHECK(encode_maps(*program));
  HONE_CHECK(context_.finish());
  programs_[id] = std::move(program);
  return {};
}

Result<> Engine::resolve(Program& program, const std::vector<std::string>& symbols) {
  const auto known = [&](const std::string& tensor) { return tensor_index(tensor).has_value(); };
  for (const PlanTensorMap& map : program.plan.tensor_maps)
    if (!known(map.tensor)) return fail(ErrorKind::internal, "{}: its plan was not validated", program.name);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    Program::Step step;
    step.plan_step = i;
    bool fits = true;
    if (const auto* launch = std::get_if<PlanLaunch>(&program.plan.launches[i])) {
      fits = launch->module < program.modules.size();
      for (const PlanArg& arg : launch->args) {
        if (arg.kind == ArgKind::tensor) fits = fits && known(arg.tensor);
        if (arg.kind == ArgKind::workspace) fits = fits && arg.index < program.workspaces.size();
        if (arg.kind == ArgKind::tensor_map) fits = fits && arg.index < program.plan.tensor_maps.size();
      }
      if (!fits) return fail(ErrorKind::internal, "{}: its plan was not validated", program.name);
      if (const CUresult code = cu.module_function(&step.function, program.modules[launch->module], symbols[i].c_str()); code != kSuccess)
        return fail(ErrorKind::kernel_name, "{}: its module has no kernel {} (symbol {}): {}", program.name, launch->kernel, symbols[i], name_of_result(code));
      HONE_CHECK(check_launch(program, *launch, step.function));
      program.overlaps = program.overlaps || launch->programmatic_dependent_launch;
    } else {
      const auto& memset = std::get<PlanMemset>(program.plan.launches[i]);
      fits = memset.tensor.empty() ? memset.workspace < program.workspaces.size() : known(memset.tensor);
      if (!fits) return fail(ErrorKind::internal, "{}: its plan was not validated", program.name);
    }
    program.steps.push_back(step);
  }
  return {};
}

// What a launch needs and the GPU has, said before the driver says less.
Result<> Engine::check_launch(const Program& program, const PlanLaunch& launch, CUfunction function) const {
  const auto attribute = [&](int which) {
    int value = 0;
    cu.function_attribute(&value, which, function);
    return static_cast<std::int64_t>(value);
  };
  const std::string what = fmt::format("{}: {}", program.name, launch.kernel);
  const auto refuse = [&](std::string text) { return fail(make_error(ErrorKind::launch, "{} {}", what, text).at({"plan.cpp", launch.line})); };
  if (cu.parameter_info != nullptr) {
    std::size_t count = 0, offset = 0, size = 0;
    while (cu.parameter_info(function, count, &offset, &size) == kSuccess) {
      if (count < launch.args.size() && size != bytes_of(launch.args[count].kind))
        return fail(make_error(ErrorKind::kernel_name, "{}: parameter {} has {} bytes, the plan's argument ({}) {}", what, count + 1, size,
                               name_of(launch.args[count].kind), bytes_of(launch.args[count].kind)).at({"plan.cpp", launch.line}));
      ++count;
    }
    if (count != launch.args.size())
      return fail(make_error(ErrorKind::kernel_name, "{} takes {} parameters, the plan gives {} arguments", what, count, launch.args.size())
                      .at({"plan.cpp", launch.line}));
  }
  const std::int64_t threads = product(launch.block), most = attribute(kFunctionMaxThreads);
  if (threads > most)
    return refuse(fmt::format("cannot have {} threads a block: with {} registers a thread there is room for {}", threads, attribute(kFunctionRegisters), most));
  const std::int64_t fixed = attribute(kFunctionShared), available = context_.attribute(kSharedOptin);
  if (fixed + launch.shared_bytes > available)
    return refuse(fmt::format("needs {} bytes of shared memory ({} in its code, {} by the launch); the GPU gives a block {}",
                              fixed + launch.shared_bytes, fixed, launch.shared_bytes, available));
  if (const CUresult code = cu.set_function_attribute(function, kFunctionMaxDynamicShared, static_cast<int>(launch.shared_bytes)); code != kSuccess)
    return refuse(fmt::format("cannot have {} bytes of dynamic shared memory: {}", launch.shared_bytes, name_of_result(code)));
  const std::int64_t cluster = product(launch.cluster);
  if (cluster > 8) cu.set_function_attribute(function, kFunctionNonPortableCluster, 1);
  if (cluster > 1) {
    std::vector<LaunchAttribute> attributes;
    const LaunchConfig config = config_of(launch, attributes, true);
    int clusters = 0;
    if (cu.resident_clusters(&clusters, function, &config) != kSuccess || clusters < 1)
      return refuse(fmt::format("cannot run in clusters of {} blocks with these resources", cluster));
  }
  if (launch.cooperative) {
    int blocks = 0;
    cu.resident_blocks(&blocks, function, static_cast<int>(threads), static_cast<std::size_t>(launch.shared_bytes));
    const std::int64_t room = std::int64_t{blocks} * context_.multiprocessors;
    if (product(launch.grid) > room)
      return refuse(fmt::format("is launched cooperatively with {} blocks; the GPU holds {} at a time", product(launch.grid), room));
  }
  return {};
}

LaunchConfig Engine::config_of(const PlanLaunch& launch, std::vector<LaunchAttribute>& attributes, bool first) const {
  if (product(launch.cluster) > 1) {
    LaunchAttribute& each = attributes.emplace_back();
    each.id = kLaunchCluster;
    each.value.cluster = {static_cast<unsigned>(launch.cluster[0]), static_cast<unsigned>(launch.cluster[1]), static_cast<unsigned>(launch.cluster[2])};
  }
  if (launch.cooperative) {
    LaunchAttribute& each = attributes.emplace_back();
    each.id = kLaunchCooperative;
    each.value.flag = 1;
  }
  // Of the plan's first launch nothing of the program stands before it.
  if (launch.programmatic_dependent_launch && !first) {
    LaunchAttribute& each = attributes.emplace_back();
    each.id = kLaunchProgrammaticSerialization;
    each.value.flag = 1;
  }
  LaunchConfig config = {};
  for (std::size_t d = 0; d < 3; ++d) {
    config.grid[d] = static_cast<unsigned>(launch.grid[d]);
    config.block[d] = static_cast<unsigned>(launch.block[d]);
  }
  config.shared_bytes = static_cast<unsigned>(launch.shared_bytes);
  config.stream = context_.stream;
  config.attributes = attributes.data();
  config.attribute_count = static_cast<unsigned>(attributes.size());
  return config;
}

// The driver counts axes from the innermost.
Result<> Engine::encode_maps(Program& program) {
  program.maps.assign(program.plan.tensor_maps.size(), {});
  for (std::size_t i = 0; i < program.maps.size(); ++i) {
    const PlanTensorMap& map = program.plan.tensor_maps[i];
    HONE_TRY(const std::size_t index, tensor_index(map.tensor));
    const std::optional<TensorShape> flattened = spec_.workload.tensors[index].flattened(map.box.size());
    if (!flattened) return fail(ErrorKind::internal, "{}: its plan was not validated", program.name);
    const TensorShape& tensor = *flattened;
    const auto refuse = [&](const std::string& why) {
      return fail(make_error(ErrorKind::launch, "{}: tensor map {}: {}", program.name, map.name, why).at({"plan.cpp", map.line}));
    };
    if (cu.tensor_map_encode == nullptr) return refuse("the driver has no tensor maps");
    const std::size_t rank = tensor.shape.size();
    if (rank > 5) return refuse(fmt::format("tensor {} has {} axes; tensor maps have 1 to 5", tensor.name, rank));
    if (tensor.strides.back() != 1) return refuse(fmt::format("the last axis of tensor {} has stride {}; it must be 1", tensor.name, tensor.strides.back()));
    std::uint64_t sizes[5] = {}, strides[5] = {};
    std::uint32_t box[5] = {}, steps[5] = {};
    for (std::size_t d = 0; d < rank; ++d) {
      const std::size_t from = rank - 1 - d;
      sizes[d] = static_cast<std::uint64_t>(tensor.shape[from]);
      box[d] = static_cast<std::uint32_t>(map.box.at(from));
      steps[d] = map.strides.empty() ? 1 : static_cast<std::uint32_t>(map.strides.at(from));
      if (d > 0) strides[d - 1] = static_cast<std::uint64_t>(tensor.strides[from]) * size_of(tensor.dtype);
    }
    const CUresult code = cu.tensor_map_encode(
        &program.maps[i], tensor_map_type(tensor.dtype), static_cast<std::uint32_t>(rank),
        reinterpret_cast<void*>(tensor_buffer(program, index).data()), sizes, strides, box, steps, 0 /* not interleaved */,
        index_in(map.swizzle, {"none", "32B", "64B", "128B"}), index_in(map.l2, {"none", "64B", "128B", "256B"}), index_in(map.fill, {"zero", "nan"}));
    if (code != kSuccess)
      return refuse(fmt::format("the driver refuses it ({}): strides and the base are multiples of 16 bytes, the box's innermost "
                                "extent is a multiple of 16 bytes and not wider than the swizzle", name_of_result(code)));
  }
  return {};
}

Result<> Engine::load_native(ProgramId id, const std::string& name, const std::string& path) {
  auto program = std::make_unique<Program>();
  program->name = name;
  HONE_CHECK(add_buffers(*program));
  static const std::string no_set;
  program->frame = std::make_unique<TaskFrame>(spec_.workload, no_set, 0, 0);
  program->frame->call().stream = context_.stream;
  HONE_CHECK(show_inputs());
  HONE_CHECK(refill(*program));
  auto opened = natives_.find(path);
  if (opened == natives_.end()) {
    Native native;
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) return fail(ErrorKind::contract, "{}: cannot load it: {}", name, ::dlerror());
    const auto open = reinterpret_cast<void* (*)(const TaskCall*)>(::dlsym(library, "hone_baseline_open"));
    native.describe = reinterpret_cast<const char* (*)(void*)>(::dlsym(library, "hone_baseline_describe"));
    native.run = reinterpret_cast<void (*)(void*, const TaskCall*)>(::dlsym(library, "hone_baseline_run"));
    if (open == nullptr || native.run == nullptr)
      return fail(ErrorKind::contract, "{} lacks hone_baseline_open or hone_baseline_run", name);
    HONE_CHECK(program->frame->run([&](const TaskCall* call) { native.state = open(call); }, name + ": hone_baseline_open"));
    opened = natives_.emplace(path, native).first;
  }
  program->library = &opened->second;
  HONE_CHECK(context_.finish());
  if (program->library->describe != nullptr)
    if (const char* text = program->library->describe(program->library->state); text != nullptr) program->description = text;
  programs_[id] = std::move(program);
  return {};
}

std::string Engine::describe(ProgramId id) const {
  const auto program = find(id);
  if (!program) return {};
  const std::string& text = (*program)->description;
  return (*program)->blockable ? text : text + " (it synchronises: its launch latency is in its times)";
}

Result<> Engine::output(ProgramId id, std::size_t tensor, std::byte* to) {
  HONE_TRY(Program* program, find(id));
  if (tensor >= program->tensors.size() || program->tensors[tensor] == nullptr)
    return fail(ErrorKind::internal, "workload {} has no such output or persistent tensor", spec_.workload.id);
  Buffer& buffer = *program->tensors[tensor];
  HONE_CHECK(buffer.memory().show());
  return check(cu.to_host(to, buffer.data(), buffer.bytes()), "reading an output");
}

Result<std::vector<GuardDamage>> Engine::guards(ProgramId id) {
  HONE_TRY(Program* program, find(id));
  std::vector<Buffer*> buffers;
  for (const auto* list : {&program->tensors, &program->workspaces, &inputs_})
    for (const auto& each : *list)
      if (each != nullptr) buffers.push_back(each.get());
  std::vector<Damage> reports(2 * buffers.size(), Damage{INT64_MAX, 0});
  const std::size_t bytes = reports.size() * sizeof(Damage);
  if (bytes > kScratch) return fail(ErrorKind::internal, "too many buffers to look at");
  HONE_CHECK(check(cu.to_device(scratch_, reports.data(), bytes, context_.stream), "looking at canaries"));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    HONE_CHECK(buffers[i]->memory().show());
    HONE_CHECK(buffers[i]->guard(context_, scratch_ + 2 * i * sizeof(Damage)));
  }
  HONE_CHECK(context_.finish());
  HONE_CHECK(check(cu.to_host(reports.data(), scratch_, bytes), "looking at canaries"));
  std::vector<GuardDamage> out;
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (reports[i].bytes > 0) out.push_back({buffers[i / 2]->name(), reports[i].first, reports[i].bytes});
  return out;
}

}  // namespace hone::cuda
