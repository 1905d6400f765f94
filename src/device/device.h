// What can run kernel programs and time them from outside. Implemented by the CPU device and by CUDA;
// tests/device holds one contract suite for both.
//
// A Session is one workload on one device, exclusively: input buffers, and any number of loaded
// programs (candidate, baseline, incumbent), each with buffers of its own for outputs, persistent
// tensors and workspaces, so that one never sees another's results.
#ifndef HONE_DEVICE_DEVICE_H
#define HONE_DEVICE_DEVICE_H

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "contract/task.h"
#include "device/data.h"
#include "program/plan.h"
#include "program/problem.h"

namespace hone {

struct DeviceInfo {
  std::string name;                 // "cpu"
  std::string model;                // "AMD EPYC"
  std::string architecture;         // "cpu", "sm_90a"
  std::int64_t workers = 1;         // CPU: worker threads; GPU: SMs
  std::uint64_t cache_bytes = 0;    // last-level cache
  std::uint64_t memory_bytes = 0;
  ProgramLimits limits;
  double peak_flops = 0;            // upper bounds for the physical floor, per second
  double peak_bytes = 0;
  nlohmann::json facts;             // everything else that a receipt should say: flags, driver, clocks
};

// A kernel program ready to run: plan, its modules compiled, its kernels resolved.
struct LoadedModule {
  fs::path path;
};
// Where a launch's kernel is in its module.
struct KernelEntry {
  std::uint64_t offset = 0;                   // CPU: from the load address
  std::string symbol;                         // CUDA: mangled
};
struct Executable {
  std::string name;                           // for messages: the candidate's name
  Plan plan;
  std::vector<LoadedModule> modules;          // by plan module
  std::vector<KernelEntry> entry;             // by plan step; an empty one for a memset
  bool trusted = false;                       // the task's own, a baseline: it is measured, not suspected
};
// A native baseline: a trusted shared object with hone_baseline_* (include/hone/task.h).
struct NativeBaseline {
  std::string name;
  fs::path path;
};

struct SessionSpec {
  Workload workload;
  std::uint64_t memory_bytes = 0;   // limit for a program's own allocations
  double call_timeout_s = 10;
  double load_timeout_s = 30;
  fs::path task_code = {};          // of a task.cu, compiled: for devices that fill and judge data themselves
};

struct CallOptions {
  bool timed = false;               // flush caches, hide launch latency, rotate addresses
};

struct CallResult {
  double seconds = 0;               // of the launches alone, seen from outside
  std::optional<Error> fault;       // crash, timeout, out_of_memory, output_limit, forbidden, launch, late_work, input_modified
  double extra_cpu_s = 0;           // CPU time the program used after it had reported the end
};

// Damage around a buffer: canaries before, after and between rows.
struct GuardDamage {
  std::string buffer;
  std::int64_t first_byte = 0;      // relative to the buffer's start; negative: before it
  std::int64_t bytes = 0;
};

class Session {
 public:
  virtual ~Session() = default;

  // A fresh process (CPU) or module instance (GPU) with nothing left of earlier ones.
  virtual Result<ProgramId> load(const Executable& program) = 0;
  virtual Result<ProgramId> load(const NativeBaseline& baseline) = 0;
  // Ends the program's process; the id stays unused.
  virtual void unload(ProgramId id) = 0;

  // Host views of the inputs (and the pristine values of persistent tensors) for the judge to fill;
  // then one call makes them what programs see from the next call on. `inputs_changed` says whether
  // any program has altered an input since (by hash; impossible where inputs are mapped read-only).
  virtual std::vector<HostTensor> inputs() = 0;
  virtual Result<> commit_inputs() = 0;
  virtual Result<bool> inputs_intact() = 0;

  // Poisons outputs and workspaces with a fresh secret pattern, restores persistent tensors, runs
  // the program's launches once. A Result error is a fault of the device, not of the program.
  virtual Result<CallResult> call(ProgramId id, const CallOptions& options) = 0;

  // After a call: a host view of an output or persistent tensor, valid until the next call.
  virtual Result<std::span<const std::byte>> output(ProgramId id, const std::string& tensor) = 0;
  // Elements of the output that still hold the poison of the last call, as a predicate over the
  // element's bytes at `offset`.
  virtual bool is_poison(ProgramId id, const std::string& tensor, std::size_t offset) = 0;
  virtual Result<std::vector<GuardDamage>> guards(ProgramId id) = 0;
  // The judge's hand where the device keeps its tensors; null: in this process's memory, through inputs() and output().
  virtual DeviceData* data() { return nullptr; }
  // What a native baseline says of itself (library, kernel, threads), or empty.
  virtual std::string describe(ProgramId id) = 0;
  // What the device saw of itself around the timed calls so far: clocks, throttle reasons, power, temperature, foreign
  // processes. Null where it cannot see any.
  virtual nlohmann::json conditions() { return nullptr; }
};

// A program for a tool that watches a process: a profiler, a sanitizer.
struct WatchSpec {
  SessionSpec session;
  InputSet inputs;
  std::uint64_t seed = 0;
  Executable program;
  int rehearsals = 0;               // calls before the one that is watched
};
// The process that a tool starts. When it has ended, `answer` holds {"ok": null} or {"error": Error}.
struct WatchedCommand {
  std::vector<std::string> argv, env;
  fs::path answer;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Result<std::unique_ptr<Session>> open(const SessionSpec& spec) = 0;
  // The command of a process that fills the inputs, makes the program's launches and ends: on plain allocations of the
  // tensors' exact sizes, outputs and workspaces as they come, the last call between the marks of profilers. Its files lie
  // in `folder`. Kind environment: no tool watches this device.
  virtual Result<WatchedCommand> watched(const WatchSpec& /*spec*/, const fs::path& /*folder*/) const {
    return fail(ErrorKind::environment, "the tools that watch kernels do not know device {}", info().name);
  }
};

struct CpuDeviceOptions {
  int workers = 0;                  // 0: cores - 1, at least 1: one core is the clock's
};
Result<std::unique_ptr<Device>> make_cpu_device(const Sandbox& sandbox, const fs::path& libexec, CpuDeviceOptions options = {});

// GPU number `ordinal` of the CUDA driver, by a hone-gpu process a session (src/device/cuda). `share` is share/hone: its
// cuda/helpers.cu is compiled by nvcc. Kind environment: no driver, too old a driver, no GPU, no nvcc.
Result<std::unique_ptr<Device>> make_cuda_device(const Toolchain& toolchain, const fs::path& libexec, const fs::path& share,
                                                 int ordinal);

}  // namespace hone

#endif
