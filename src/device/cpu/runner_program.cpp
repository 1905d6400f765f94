#include "device/cpu/runner_program.h"

#include <dlfcn.h>
#include <ffi.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/cpu/runner_faults.h"
#include "device/cpu/runner_seat.h"
#include "hone/kernel.h"
#include "hone/task.h"

namespace hone::cpu {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMemsetChunk = 256 * 1024;
constexpr std::size_t kPageBytes = 4096;

std::byte* map(int fd, std::uint64_t bytes, int protection, const char* what) {
  void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw RunnerFault(std::string("cannot map the ") + what + ": " + std::strerror(errno));
  return static_cast<std::byte*>(at);
}

void touch(volatile std::byte* begin, volatile const std::byte* end, bool writable) {
  for (; begin < end; begin += kPageBytes) {
    const std::byte value = *begin;
    if (writable) *begin = value;
  }
}

// The guards become inaccessible, and every other page is there before the first call needs it.
void protect_guards(std::byte* arena, std::uint64_t bytes, const Json& guards, bool writable) {
  std::byte* next = arena;
  for (const Json& guard : guards) {
    std::byte* at = arena + guard.at(0).get<std::uint64_t>();
    const auto length = guard.at(1).get<std::uint64_t>();
    if (::mprotect(at, length, PROT_NONE) != 0)
      throw RunnerFault(std::string("cannot protect a guard: ") + std::strerror(errno));
    touch(next, at, writable);
    next = at + length;
  }
  touch(next, arena + bytes, writable);
}

struct Object {
  void* handle = nullptr;
  std::uintptr_t base = 0;
};

Object open_object(const std::string& path, std::uint32_t index) {
  Object object;
  object.handle = open_shared_object(path.c_str());
  if (object.handle == nullptr) {
    const char* reason = ::dlerror();
    throw RunnerFault(reason != nullptr ? reason : "unknown reason");
  }
  link_map* loaded = nullptr;
  if (::dlinfo(object.handle, RTLD_DI_LINKMAP, &loaded) != 0)
    throw RunnerFault("the shared object has no load address");
  object.base = loaded->l_addr;
  struct Search {
    std::uintptr_t base, end;
  } search = {object.base, object.base};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (info->dlpi_addr != wanted.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_LOAD)
            wanted.end = std::max<std::uintptr_t>(
                wanted.end, wanted.base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
        return 1;
      },
      &search);
  note_object(index, object.base, search.end);
  return object;
}

// Where a buffer lies, by slot.
struct Buffer {
  std::vector<std::byte*> at;
};

struct Loaded {
  Json blob;
  std::vector<Buffer> buffers;
  std::vector<Object> objects;
  std::byte* own = nullptr;
  std::size_t slots = 0;
  bool native = false;
};

ffi_type* type_of(const std::string& kind) {
  if (kind == "i32") return &ffi_type_sint32;
  if (kind == "u32") return &ffi_type_uint32;
  if (kind == "i64") return &ffi_type_sint64;
  if (kind == "u64") return &ffi_type_uint64;
  if (kind == "f32") return &ffi_type_float;
  if (kind == "f64") return &ffi_type_double;
  throw RunnerFault("unknown argument kind " + kind);
}

class KernelProgram final : public Program {
 public:
  KernelProgram(Control& control, const Loaded& loaded, std::uint32_t workers) : control_(control), workers_(workers) {
    for (std::uint32_t i = 0; i < workers; ++i)
      scratch_.push_back(loaded.blob.at("shared").empty()
                             ? nullptr
                             : loaded.own + loaded.blob.at("shared").at(i).get<std::uint64_t>());
    for (const Json& step : loaded.blob.at("steps")) {
      steps_.emplace_back();
      if (step.contains("memset")) bind_memset(step, loaded, steps_.back());
      else bind_launch(step, loaded, steps_.back());
    }
  }

  bool native() const override { return false; }
  std::uint32_t steps() const override { return static_cast<std::uint32_t>(steps_.size()); }
  std::uint64_t blocks(std::uint32_t step) const override { return steps_[step].blocks; }

  void run(std::uint32_t index, std::uint32_t slot, std::uint64_t number, std::uint32_t worker) override {
    Step& step = steps_[index];
    Position& position = control_.positions[worker];
    position.step.store(index, std::memory_order_relaxed);
    position.block.store(number, std::memory_order_relaxed);
    if (step.function == nullptr) {
      const std::uint64_t begin = number * kMemsetChunk;
      std::memset(step.target[slot] + begin, step.value, std::min(kMemsetChunk, step.bytes - begin));
      return;
    }
    hone::Block block;
    block.grid = step.grid;
    block.index.x = static_cast<std::uint32_t>(number % step.grid.x);
    block.index.y = static_cast<std::uint32_t>(number / step.grid.x % step.grid.y);
    block.index.z = static_cast<std::uint32_t>(number / step.grid.x / step.grid.y);
    block.worker = worker;
    block.workers = workers_;
    block.shared = step.shared != 0 ? scratch_[worker] : nullptr;
    block.shared_bytes = step.shared;
    const hone::Block* pointer = &block;
    std::array<void*, kMaxArguments> values;
    values[0] = &pointer;
    std::uint64_t* bits = step.bits[slot].data();
    for (std::size_t i = 1; i < step.types.size(); ++i) values[i] = bits + i - 1;
    ::ffi_call(&step.call, step.function, nullptr, values.data());
  }

 private:
  static constexpr std::size_t kMaxArguments = 128;
  struct Step {
    void (*function)() = nullptr;                   // null: a memset
    std::uint64_t blocks = 1;
    hone::Dim3 grid;
    std::size_t shared = 0;
    ffi_cif call = {};
    std::vector<ffi_type*> types;
    std::vector<std::vector<std::uint64_t>> bits;   // by slot: pointers and scalars after the block
    std::vector<std::byte*> target;                 // memset, by slot
    std::uint64_t bytes = 0;
    int value = 0;
  };

  static void bind_memset(const Json& json, const Loaded& loaded, Step& step) {
    step.target = loaded.buffers.at(json.at("memset").get<std::size_t>()).at;
    step.bytes = json.at("bytes").get<std::uint64_t>();
    step.value = json.at("value").get<int>();
    step.blocks = (step.bytes + kMemsetChunk - 1) / kMemsetChunk;
    step.bits.resize(loaded.slots);
  }

  static void bind_launch(const Json& json, const Loaded& loaded, Step& step) {
    const std::uintptr_t address =
        loaded.objects.at(json.at("object").get<std::size_t>()).base + json.at("entry").get<std::uint64_t>();
    std::memcpy(&step.function, &address, sizeof address);
    step.grid = {json.at("grid").at(0).get<std::uint32_t>(), json.at("grid").at(1).get<std::uint32_t>(),
                 json.at("grid").at(2).get<std::uint32_t>()};
    step.blocks = std::uint64_t{step.grid.x} * step.grid.y * step.grid.z;
    step.shared = json.at("shared").get<std::size_t>();
    step.types.push_back(&ffi_type_pointer);
    step.bits.resize(loaded.slots);
    for (const Json& argument : json.at("args")) {
      const bool pointer = argument.contains("buffer");
      step.types.push_back(pointer ? &ffi_type_pointer : type_of(argument.at("kind").get<std::string>()));
      for (std::size_t slot = 0; slot < loaded.slots; ++slot)
        step.bits[slot].push_back(pointer ? reinterpret_cast<std::uintptr_t>(
                                                loaded.buffers.at(argument.at("buffer").get<std::size_t>()).at.at(slot))
                                          : argument.at("bits").get<std::uint64_t>());
    }
    if (step.types.size() > kMaxArguments) throw RunnerFault("a launch has too many arguments");
    if (::ffi_prep_cif(&step.call, FFI_DEFAULT_ABI, static_cast<unsigned>(step.types.size()), &ffi_type_void,
                       step.types.data()) != FFI_OK)
      throw RunnerFault("a launch's arguments cannot be passed");
  }

  Control& control_;
  const std::uint32_t workers_;
  std::vector<std::byte*> scratch_;
  std::deque<Step> steps_;          // stays where it is: cif points to types
};

class NativeProgram final : public Program {
 public:
  NativeProgram(Control& control, const Loaded& loaded) : control_(control) {
    void* handle = loaded.objects.at(0).handle;
    open_ = symbol<decltype(open_)>(handle, "hone_baseline_open");
    run_ = symbol<decltype(run_)>(handle, "hone_baseline_run");
    const Json& task = loaded.blob.at("task");
    workload_ = task.at("workload").get<std::string>();
    for (const Json& axis : task.at("axes")) {
      numbers_.push_back(axis.at("values").get<std::vector<std::int64_t>>());
      names_.push_back(axis.at("name").get<std::string>());
      axes_.push_back(
          {names_.back().c_str(), static_cast<std::int64_t>(numbers_.back().size()), numbers_.back().data()});
    }
    tensors_.resize(loaded.slots);
    for (const Json& tensor : task.at("tensors")) {
      names_.push_back(tensor.at("name").get<std::string>());
      numbers_.push_back(tensor.at("shape").get<std::vector<std::int64_t>>());
      const std::vector<std::int64_t>& shape = numbers_.back();
      numbers_.push_back(tensor.at("strides").get<std::vector<std::int64_t>>());
      for (std::size_t slot = 0; slot < loaded.slots; ++slot)
        tensors_[slot].push_back({names_.back().c_str(), static_cast<DType>(tensor.at("dtype").get<int>()),
                                  static_cast<std::int32_t>(shape.size()), shape.data(), numbers_.back().data(),
                                  loaded.buffers.at(tensor.at("buffer").get<std::size_t>()).at.at(slot), nullptr});
    }
    for (std::size_t slot = 0; slot < loaded.slots; ++slot) {
      TaskCall call = {};
      call.workload = workload_.c_str();
      call.input_set = "random";
      call.axis_count = static_cast<std::int32_t>(axes_.size());
      call.axes = axes_.data();
      call.tensor_count = static_cast<std::int32_t>(tensors_[slot].size());
      call.tensors = tensors_[slot].data();
      call.workers = task.at("workers").get<std::int32_t>();
      call.sink = this;
      call.add_region = [](void*, const char*, const char*, std::int64_t, std::int64_t) {};
      // Ends the process: the C functions have no other way out. The trusted side reads the text.
      call.fail = [](void* sink, const char* message) {
        static_cast<NativeProgram*>(sink)->refuse(message);
        ::_exit(3);
      };
      calls_.push_back(call);
    }
    state_ = open_(&calls_[0]);
    if (void* describe = ::dlsym(handle, "hone_baseline_describe")) {
      const char* (*function)(void*) = nullptr;
      std::memcpy(&function, &describe, sizeof describe);
      const char* text = function(state_);
      if (text != nullptr) std::strncpy(control_.description, text, sizeof control_.description - 1);
    }
  }

  bool native() const override { return true; }
  std::uint32_t steps() const override { return 1; }
  std::uint64_t blocks(std::uint32_t) const override { return 1; }
  void run(std::uint32_t, std::uint32_t slot, std::uint64_t, std::uint32_t) override { run_(state_, &calls_[slot]); }

 private:
  template <class F>
  static F symbol(void* handle, const char* name) {
    void* found = ::dlsym(handle, name);
    if (found == nullptr) throw RunnerFault(std::string("it does not define ") + name);
    F function = nullptr;
    std::memcpy(&function, &found, sizeof found);
    return function;
  }
  void refuse(const char* message) {
    std::strncpy(control_.message, message != nullptr ? message : "", sizeof control_.message - 1);
    control_.state.store(kRefused, std::memory_order_release);
  }

  Control& control_;
  void* (*open_)(const TaskCall*) = nullptr;
  void (*run_)(void*, const TaskCall*) = nullptr;
  void* state_ = nullptr;
  std::string workload_;
  std::deque<std::string> names_;                     // stay where they are
  std::deque<std::vector<std::int64_t>> numbers_;
  std::vector<TaskAxis> axes_;
  std::vector<std::vector<TaskTensor>> tensors_;      // by slot
  std::vector<TaskCall> calls_;
};

}  // namespace

std::unique_ptr<Program> load_program(Control& control, std::uint32_t workers) {
  Loaded loaded;
  loaded.own = map(kArenaFd, control.arena_bytes, PROT_READ | PROT_WRITE, "program's own memory");
  std::byte* input = control.input_bytes != 0 ? map(kInputFd, control.input_bytes, PROT_READ, "inputs") : nullptr;
  // Without descriptors the memory cannot be mapped otherwise, nor resized.
  ::close(kArenaFd);
  ::close(kInputFd);
  note_arena(kInputArena, input, control.input_bytes);
  note_arena(kOwnArena, loaded.own, control.arena_bytes);
  try {
    const char* blob = reinterpret_cast<const char*>(loaded.own) + control.blob_offset;
    loaded.blob = Json::parse(blob, blob + control.blob_bytes);
    loaded.slots = loaded.blob.at("slots").get<std::size_t>();
    protect_guards(input, control.input_bytes, loaded.blob.at("guards").at("input"), false);
    protect_guards(loaded.own, control.arena_bytes, loaded.blob.at("guards").at("own"), true);
    for (const Json& buffer : loaded.blob.at("buffers")) {
      loaded.buffers.emplace_back();
      std::byte* arena = buffer.at("arena") == "input" ? input : loaded.own;
      for (const Json& offset : buffer.at("offset"))
        loaded.buffers.back().at.push_back(arena + offset.get<std::uint64_t>());
    }
    // From here on a candidate's code runs: static constructors first. A baseline is trusted, and its library may
    // start its threads when it is first called.
    loaded.native = loaded.blob.at("native").get<bool>();
    if (!loaded.native) lock_while_loading();
    for (const Json& path : loaded.blob.at("objects"))
      loaded.objects.push_back(open_object(path.get<std::string>(), static_cast<std::uint32_t>(loaded.objects.size())));
    if (loaded.native) return std::make_unique<NativeProgram>(control, loaded);
    return std::make_unique<KernelProgram>(control, loaded, workers);
  } catch (const Json::exception& error) {
    throw RunnerFault(std::string("the program's description is broken: ") + error.what());
  }
}

}  // namespace hone::cpu
