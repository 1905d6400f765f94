#include "device/cuda/driver.h"

#include <dlfcn.h>

namespace hone::cuda {

Driver cu;

namespace {

constexpr int kOldestDriver = 12000;

ErrorKind kind_of(CUresult code) {
  switch (code) {
    case kOutOfMemory: return ErrorKind::out_of_memory;
    case kInvalidValue:                 // of a launch's configuration
    case 200:                           // INVALID_IMAGE
    case 209:                           // NO_BINARY_FOR_GPU
    case 701:                           // LAUNCH_OUT_OF_RESOURCES
    case 720:                           // COOPERATIVE_LAUNCH_TOO_LARGE
    case 912:                           // INVALID_CLUSTER_SIZE
      return ErrorKind::launch;
    case 700:                           // ILLEGAL_ADDRESS
    case 717:                           // INVALID_ADDRESS_SPACE
      return ErrorKind::illegal_address;
    case 716: return ErrorKind::misaligned_address;
    case 710: return ErrorKind::device_assert;
    case 714:                           // HARDWARE_STACK_ERROR
    case 715:                           // ILLEGAL_INSTRUCTION
    case 718:                           // INVALID_PC
    case 719:                           // LAUNCH_FAILED: traps, too
      return ErrorKind::crash;
    case 702: return ErrorKind::timeout;   // LAUNCH_TIMEOUT
    default: return ErrorKind::device;
  }
}

Error no_driver(std::string message, std::string hint) {
  return Error{ErrorKind::environment, std::move(message)}.with_hint(std::move(hint));
}

}  // namespace

Result<> Driver::open() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(no_driver("no CUDA driver: libcuda.so.1 is not found", "install the NVIDIA driver, or use a machine that has one"));
  std::string missing;
#define HONE_CUDA_LOAD(name, symbol, parameters)                                       \
  cu.name = reinterpret_cast<CUresult(*) parameters>(::dlsym(library, symbol));        \
  if (cu.name == nullptr && missing.empty()) missing = symbol;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_LOAD)
  const std::string needed = missing;
  HONE_CUDA_NEWER_FUNCTIONS(HONE_CUDA_LOAD)
#undef HONE_CUDA_LOAD
  int version = 0;
  if (cu.driver_version != nullptr) cu.driver_version(&version);
  if (!needed.empty() || version < kOldestDriver)
    return fail(no_driver(fmt::format("the CUDA driver is too old: it speaks CUDA {}.{}{}", version / 1000, version % 1000 / 10,
                                      needed.empty() ? "" : " and lacks " + needed),
                          fmt::format("install a driver for CUDA {} or later", kOldestDriver / 1000)));
  if (const CUresult code = cu.init(0); code != kSuccess)
    return fail(no_driver(code == 100 ? "no GPU: the CUDA driver finds none" : "the CUDA driver does not start: " + name_of_result(code),
                          "look at nvidia-smi and at CUDA_VISIBLE_DEVICES"));
  int count = 0;
  if (cu.device_count(&count) != kSuccess || count == 0)
    return fail(no_driver("no GPU: the CUDA driver finds none", "look at nvidia-smi and at CUDA_VISIBLE_DEVICES"));
  return {};
}

std::string name_of_result(CUresult code) {
  const char *name = nullptr, *text = nullptr;
  if (cu.error_name != nullptr) cu.error_name(code, &name);
  if (cu.error_text != nullptr) cu.error_text(code, &text);
  if (name == nullptr) return fmt::format("CUDA error {}", code);
  return text == nullptr ? std::string(name) : fmt::format("{} ({})", name, text);
}

Error cuda_error(CUresult code, const std::string& doing) {
  return make_error(kind_of(code), "{}: {}", doing, name_of_result(code));
}

Result<> check(CUresult code, const char* doing) {
  if (code == kSuccess) return {};
  return fail(cuda_error(code, doing));
}

}  // namespace hone::cuda
