// What Hone uses of the CUDA driver's interface, declared here: libcuda is opened at run time, so that one binary runs
// with and without a GPU and builds without a toolkit. Names and numbers are the driver's own (CUDA Driver API, cuda.h).
#ifndef HONE_DEVICE_CUDA_DRIVER_H
#define HONE_DEVICE_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace hone::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemGenericAllocationHandle = unsigned long long;

inline constexpr CUresult kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kNotReady = 600;

enum Attribute : int {
  kMaxThreadsPerBlock = 1, kMaxBlockX = 2, kMaxGridX = 5, kClockRate = 13, kMultiprocessors = 16, kEcc = 32,
  kMemoryClockRate = 36, kBusWidth = 37, kL2Bytes = 38, kMajor = 75, kMinor = 76, kCooperative = 95, kSharedOptin = 97,
  kVirtualMemory = 102, kMaxBlocksPerMultiprocessor = 106
};
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0, kFunctionShared = 1, kFunctionLocal = 3, kFunctionRegisters = 4, kFunctionMaxDynamicShared = 8,
  kFunctionNonPortableCluster = 14
};
enum LaunchAttributeId : int { kLaunchCooperative = 2, kLaunchCluster = 4, kLaunchProgrammaticSerialization = 6 };
enum Limit : int { kLimitPrintf = 1 };
inline constexpr unsigned kKeepLocalMemory = 0x10, kHostMapped = 0x02;   // CU_CTX_LMEM_RESIZE_TO_MAX, CU_MEMHOSTALLOC_DEVICEMAP

struct LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    char size[64];
    int flag;
    struct { unsigned x, y, z; } cluster;
  } value = {};
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct alignas(128) TensorMapBytes {
  std::uint64_t opaque[16];
};
struct MemoryLocation {
  int type = 1;                    // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};
struct AllocationProperties {
  int type = 1;                    // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  MemoryLocation location;
  void* win32 = nullptr;
  unsigned char flags[8] = {};
};
struct AccessDescription {
  MemoryLocation location;
  int flags = 3;                   // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56 && sizeof(AllocationProperties) == 32 &&
              sizeof(AccessDescription) == 12);

// Member, symbol in libcuda, parameters. What only newer drivers have is in the second table and may be null.
#define HONE_CUDA_FUNCTIONS(X)                                                                                        \
  X(init, "cuInit", (unsigned))                                                                                       \
  X(driver_version, "cuDriverGetVersion", (int*))                                                                     \
  X(error_name, "cuGetErrorName", (CUresult, const char**))                                                           \
  X(error_text, "cuGetErrorString", (CUresult, const char**))                                                         \
  X(device_count, "cuDeviceGetCount", (int*))                                                                         \
  X(device_get, "cuDeviceGet", (CUdevice*, int))                                                                      \
  X(device_name, "cuDeviceGetName", (char*, int, CUdevice))                                                           \
  X(device_memory, "cuDeviceTotalMem_v2", (std::size_t*, CUdevice))                                                   \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, CUdevice))                                                  \
  X(device_bus_id, "cuDeviceGetPCIBusId", (char*, int, CUdevice))                                                     \
  X(primary_flags, "cuDevicePrimaryCtxSetFlags_v2", (CUdevice, unsigned))                                             \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                                               \
  X(set_current, "cuCtxSetCurrent", (CUcontext))                                                                      \
  X(synchronize, "cuCtxSynchronize", ())                                                                              \
  X(set_limit, "cuCtxSetLimit", (int, std::size_t))                                                                   \
  X(reset_persisting, "cuCtxResetPersistingL2Cache", ())                                                              \
  X(module_load, "cuModuleLoadData", (CUmodule*, const void*))                                                        \
  X(module_unload, "cuModuleUnload", (CUmodule))                                                                      \
  X(module_function, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))                                     \
  X(function_attribute, "cuFuncGetAttribute", (int*, int, CUfunction))                                                \
  X(set_function_attribute, "cuFuncSetAttribute", (CUfunction, int, int))                                             \
  X(resident_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int*, CUfunction, int, std::size_t))             \
  X(resident_clusters, "cuOccupancyMaxActiveClusters", (int*, CUfunction, const LaunchConfig*))                       \
  X(launch, "cuLaunchKernelEx", (const LaunchConfig*, CUfunction, void**, void**))                                    \
  X(stream_create, "cuStreamCreate", (CUstream*, unsigned))                                                           \
  X(stream_query, "cuStreamQuery", (CUstream))                                                                        \
  X(stream_write, "cuStreamWriteValue32_v2", (CUstream, CUdeviceptr, std::uint32_t, unsigned))                        \
  X(event_create, "cuEventCreate", (CUevent*, unsigned))                                                              \
  X(event_record, "cuEventRecord", (CUevent, CUstream))                                                               \
  X(event_query, "cuEventQuery", (CUevent))                                                                           \
  X(event_elapsed, "cuEventElapsedTime", (float*, CUevent, CUevent))                                                  \
  X(allocate, "cuMemAlloc_v2", (CUdeviceptr*, std::size_t))                                                           \
  X(free, "cuMemFree_v2", (CUdeviceptr))                                                                              \
  X(memory_info, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                                     \
  X(host_allocate, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                                 \
  X(host_address, "cuMemHostGetDevicePointer_v2", (CUdeviceptr*, void*, unsigned))                                    \
  X(to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, std::size_t, CUstream))                              \
  X(to_host, "cuMemcpyDtoH_v2", (void*, CUdeviceptr, std::size_t))                                                    \
  X(copy, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))                                  \
  X(memset8, "cuMemsetD8Async", (CUdeviceptr, unsigned char, std::size_t, CUstream))                                  \
  X(granularity, "cuMemGetAllocationGranularity", (std::size_t*, const AllocationProperties*, int))                   \
  X(memory_create, "cuMemCreate", (CUmemGenericAllocationHandle*, std::size_t, const AllocationProperties*, unsigned long long)) \
  X(memory_release, "cuMemRelease", (CUmemGenericAllocationHandle))                                                   \
  X(address_reserve, "cuMemAddressReserve", (CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long)) \
  X(address_free, "cuMemAddressFree", (CUdeviceptr, std::size_t))                                                     \
  X(map, "cuMemMap", (CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long))       \
  X(unmap, "cuMemUnmap", (CUdeviceptr, std::size_t))                                                                  \
  X(set_access, "cuMemSetAccess", (CUdeviceptr, std::size_t, const AccessDescription*, std::size_t))
#define HONE_CUDA_NEWER_FUNCTIONS(X)                                                                                  \
  X(tensor_map_encode, "cuTensorMapEncodeTiled",                                                                      \
    (TensorMapBytes*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*,    \
     const std::uint32_t*, int, int, int, int))                                                                       \
  X(parameter_info, "cuFuncGetParamInfo", (CUfunction, std::size_t, std::size_t*, std::size_t*))                      \
  X(profiler_start, "cuProfilerStart", ())                                                                            \
  X(profiler_stop, "cuProfilerStop", ())

struct Driver {
#define HONE_CUDA_MEMBER(name, symbol, parameters) CUresult (*name) parameters = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_MEMBER)
  HONE_CUDA_NEWER_FUNCTIONS(HONE_CUDA_MEMBER)
#undef HONE_CUDA_MEMBER

  // Opens the library and initialises the driver, once. Kind environment: not there, too old (before CUDA 12), no GPU.
  static Result<> open();
};
// After Driver::open() has succeeded.
extern Driver cu;

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
std::string name_of_result(CUresult code);
// Kind by what the code means: crash, launch, out_of_memory, else device.
Error cuda_error(CUresult code, const std::string& doing);
Result<> check(CUresult code, const char* doing);

}  // namespace hone::cuda

#endif
