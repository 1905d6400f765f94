// libcuda and NVML are opened at run time and never linked: one binary with and without a GPU.
#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "cli/facts.h"
#include "profile/tool.h"
#include "toolchain/headers.h"
#include "toolchain/toolchain.h"

namespace hone::cli {
namespace {

class Library {
 public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  bool open() const { return handle_ != nullptr; }

  // Calls a C function that returns 0 on success; any other value, or -1 when it is missing.
  template <class... A>
  int call(const char* name, A... arguments) const {
    void* symbol = handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
    if (symbol == nullptr) return -1;
    return reinterpret_cast<int (*)(A...)>(symbol)(arguments...);
  }

 private:
  void* handle_;
};

constexpr const char* kNoDriver = "no GPU device: CUDA candidates can neither run nor be timed here";

Fact driver(const Library& cuda, bool& ready) {
  Fact fact{.id = "cuda_driver", .value = {}};
  int version = 0;
  if (!cuda.open()) {
    fact.state = Fact::State::missing;
    fact.value = "libcuda.so.1 not found";
  } else if (const int code = cuda.call("cuInit", 0u); code != 0) {
    fact.state = Fact::State::missing;
    fact.value = fmt::format("cuInit answers {}", code);
  } else if (cuda.call("cuDriverGetVersion", &version) == 0) {
    ready = true;
    fact.value = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
    return fact;
  }
  fact.cost = kNoDriver;
  fact.mend = "install the NVIDIA driver, or use a machine that has one";
  return fact;
}

std::vector<Fact> gpus(const Library& cuda, bool ready) {
  int count = 0;
  if (!ready || cuda.call("cuDeviceGetCount", &count) != 0 || count <= 0)
    return {{.id = "gpu", .state = Fact::State::missing, .value = "none", .cost = kNoDriver, .mend = "use a machine with an NVIDIA GPU"}};
  std::vector<Fact> facts;
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0;
    std::size_t bytes = 0;
    char name[256] = "";
    constexpr int kMajor = 75, kMinor = 76;   // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
    if (cuda.call("cuDeviceGet", &device, i) != 0 || cuda.call("cuDeviceGetName", &name[0], 255, device) != 0 ||
        cuda.call("cuDeviceGetAttribute", &major, kMajor, device) != 0 || cuda.call("cuDeviceGetAttribute", &minor, kMinor, device) != 0 ||
        cuda.call("cuDeviceTotalMem_v2", &bytes, device) != 0) {
      facts.push_back({.id = fmt::format("gpu{}", i), .state = Fact::State::missing, .value = "does not answer", .cost = kNoDriver,
                       .mend = "look at nvidia-smi and the kernel log"});
      continue;
    }
    facts.push_back({.id = fmt::format("gpu{}", i),
                     .value = fmt::format("{}, compute capability {}.{}, {} GiB", std::string(name), major, minor, bytes >> 30)});
  }
  return facts;
}

Fact nvml() {
  const Library library("libnvidia-ml.so.1");
  const std::string cost = "clocks, throttle reasons and power of a GPU cannot be recorded";
  if (!library.open())
    return {.id = "nvml", .state = Fact::State::missing, .value = "libnvidia-ml.so.1 not found", .cost = cost, .mend = "install the NVIDIA driver"};
  if (const int code = library.call("nvmlInit_v2"); code != 0)
    return {.id = "nvml", .state = Fact::State::missing, .value = fmt::format("nvmlInit answers {}", code), .cost = cost,
            .mend = "look at nvidia-smi and the kernel log"};
  char version[96] = "";
  unsigned count = 0;
  const bool answers = library.call("nvmlSystemGetDriverVersion", &version[0], 95u) == 0 && library.call("nvmlDeviceGetCount_v2", &count) == 0;
  library.call("nvmlShutdown");
  if (!answers) return {.id = "nvml", .state = Fact::State::missing, .value = "does not answer", .cost = cost, .mend = "look at nvidia-smi"};
  return {.id = "nvml", .value = fmt::format("driver {}, {} GPU{}", std::string(version), count, count == 1 ? "" : "s")};
}

Fact tool(const std::string& name, const std::string& cost, const std::string& mend) {
  const auto found = find_vendor_tool(name);
  const std::string path = found ? found->string() : "";
  if (path.empty()) return {.id = name, .state = Fact::State::missing, .value = "not found", .cost = cost, .mend = mend};
  const std::string version = version_of(path);
  return {.id = name, .value = version.empty() ? path : fmt::format("{} ({})", version, path)};
}

Fact nvcc() {
  const auto found = Toolchain::compiler("nvcc");
  if (found) return {.id = "nvcc", .value = fmt::format("{} ({}, from {})", found->version, found->path, found->source)};
  const bool absent = Toolchain::cuda_compilers().empty() && std::getenv("HONE_CUDA") == nullptr;
  return {.id = "nvcc", .state = Fact::State::missing, .value = absent ? "not found" : found.error().message, .cost = "CUDA candidates cannot be compiled here",
          .mend = absent ? "hone toolchain add cuda" : found.error().hint};
}

Fact headers(const HeaderPackage& package) {
  const auto include = find_headers(package);
  const std::string id(package.name);
  if (include) return {.id = id, .value = fmt::format("{} ({})", version_of(package, *include), include->string())};
  return {.id = id, .state = Fact::State::missing, .value = include.error().message, .cost = "tasks are judged without their baseline " + id,
          .mend = named_place(package) ? include.error().hint : "hone toolchain add " + id};   // what is added would not be looked at
}

}  // namespace

FactGroup gpu_facts() {
  FactGroup group{"gpu", {}};
  bool ready = false;
  const Library cuda("libcuda.so.1");
  group.facts.push_back(driver(cuda, ready));
  for (Fact& fact : gpus(cuda, ready)) group.facts.push_back(std::move(fact));
  group.facts.push_back(nvml());
  group.facts.push_back(nvcc());
  for (const HeaderPackage& package : header_packages()) group.facts.push_back(headers(package));
  group.facts.push_back(tool("ncu", "`hone profile` cannot profile CUDA kernels here", "install Nsight Compute"));
  group.facts.push_back(tool("nsys", "no timelines of CUDA programs", "install Nsight Systems"));
  group.facts.push_back(tool("compute-sanitizer", "`hone sanitize` cannot check memory and races on the GPU itself here", "install the CUDA toolkit"));
  return group;
}

}  // namespace hone::cli
