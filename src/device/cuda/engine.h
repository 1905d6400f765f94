// A session inside hone-gpu: the inputs, the programs, the oracle's answer, all in the GPU's memory.
#ifndef HONE_DEVICE_CUDA_ENGINE_H
#define HONE_DEVICE_CUDA_ENGINE_H

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/task_frame.h"
#include "device/cuda/memory.h"
#include "device/cuda/nvml.h"
#include "device/device.h"

namespace hone::cuda {

// A native baseline's library, opened once for a workload: what its open() chose is the same for all that is compared.
struct Native {
  void* state = nullptr;
  void (*run)(void*, const TaskCall*) = nullptr;
  const char* (*describe)(void*) = nullptr;
};

// A kernel program or a native baseline, with buffers of its own.
struct Program {
  struct Step {
    CUfunction function = nullptr;            // null: a memset
    std::size_t plan_step = 0;
  };
  std::string name;
  Plan plan;
  std::vector<CUmodule> modules;
  std::vector<Step> steps;
  std::vector<std::unique_ptr<Buffer>> tensors;      // by tensor of the workload; inputs: null
  std::vector<std::unique_ptr<Buffer>> workspaces;
  std::vector<TensorMapBytes> maps;                  // for the current addresses
  std::vector<std::uint64_t> poison;                 // of the last call, by tensor
  bool overlaps = false;                             // some launch may begin before the one before it has ended
  bool rehearsed = false, blockable = true;
  // Native baselines.
  const Native* library = nullptr;
  std::unique_ptr<TaskFrame> frame;
  std::string description;

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();
  bool native() const { return library != nullptr; }
};

struct EngineSpec {
  Workload workload;
  int ordinal = 0;
  std::string helpers, task_code;                    // a cubin; a shared object or empty
  std::uint64_t memory_bytes = 0;                    // of a program's workspaces
  double call_timeout_s = 10;
  bool plain = false;                                // for a tool that watches: plain memory, nothing but the launches
};

class Engine {
 public:
  // `abandoned` says whether nobody waits for an answer any more.
  static Result<std::unique_ptr<Engine>> open(EngineSpec spec, std::function<bool()> abandoned);
  ~Engine();

  // Kind launch: the image or a launch's resources do not fit the GPU; kernel_name: a symbol or its parameters.
  Result<> load(ProgramId id, const std::string& name, Plan plan, const std::vector<std::string>& modules,
                const std::vector<std::string>& symbols);
  Result<> load_native(ProgramId id, const std::string& name, const std::string& path);
  void unload(ProgramId id) { programs_.erase(id); }
  std::string describe(ProgramId id) const;

  Result<> upload(std::size_t tensor, const std::byte* from);
  Result<> commit();                                 // uploaded data are what programs see
  Result<> download(std::size_t tensor, std::byte* to);
  Result<bool> intact();
  // A fault ends the process unless the context is still well (a refused launch, late work).
  Result<CallResult> call(ProgramId id, bool timed);
  // In a plain session: `rehearsals` calls, then one between the marks of profilers.
  Result<> watched(ProgramId id, int rehearsals);
  Result<> output(ProgramId id, std::size_t tensor, std::byte* to);
  const std::vector<std::uint64_t>& poison(ProgramId id) const { return programs_.at(id)->poison; }
  Result<std::vector<GuardDamage>> guards(ProgramId id);

  // As DeviceData says.
  Result<> fill(const InputSet& set, std::uint64_t seed, std::uint32_t call);
  Result<Regions> regions();
  Result<double> refer();
  Result<std::vector<RegionSums>> sums(const Pairing& pairing, const std::vector<Region>& regions, const SumsRequest& request);
  Result<OddElements> odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance);
  Result<bool> copies(ProgramId got, const std::string& tensor, const std::string& input);
  Result<std::string> output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions);
  Result<std::string> reference_digest(const std::string& tensor);
  Result<> reference(std::size_t tensor, std::size_t begin, std::size_t count, std::byte* to);   // elements: float64

  nlohmann::json sample() const { return nvml_->sample(); }
  const Workload& workload() const { return spec_.workload; }

 private:
  // A word of the host that kernels read or write.
  struct Signal {
    volatile std::uint32_t* host = nullptr;
    CUdeviceptr device = 0;
  };
  using Hash = std::array<unsigned long long, 2>;

  explicit Engine(EngineSpec spec) : spec_(std::move(spec)) {}
  Result<> set_up();
  std::uint64_t draw();                              // secret
  Result<Program*> find(ProgramId id) const;
  Result<std::size_t> tensor_index(const std::string& name) const;
  // `shape`: its canaries stand where the tensor has gaps, too; an input's stand around it.
  Result<std::unique_ptr<Buffer>> add_buffer(const std::string& name, std::size_t bytes, std::int64_t alignment,
                                             const TensorShape* shape, std::size_t addresses);
  Result<> add_buffers(Program& program);
  Result<> resolve(Program& program, const std::vector<std::string>& symbols);
  Result<> check_launch(const Program& program, const PlanLaunch& launch, CUfunction function) const;
  Result<> encode_maps(Program& program);
  Buffer& buffer_of(Program& program, const PlanArg& arg) const;
  Buffer& tensor_buffer(Program& program, std::size_t index) const;
  LaunchConfig config_of(const PlanLaunch& launch, std::vector<LaunchAttribute>& attributes, bool first) const;

  // Around a call.
  Result<> refill(Program& program);
  Result<> refill_plain(Program& program);
  Result<> leave_alone(Program& program);            // hides everything that is not its own
  Result<> show(Buffer& buffer);                     // after a call: what was hidden
  Result<> flush_caches();
  std::optional<Error> enqueue(Program& program, bool mark);
  // `ahead_s`: what the host's clock, seen from outside, has more than the events; 0 where it says nothing.
  Result<CallResult> attempt(Program& program, bool timed, double& ahead_s);
  // The error of the work in the stream, or a timeout; nullopt when it has ended.
  std::optional<Error> await(CUevent event, const Program& program, bool mark);
  Error launch_fault(const Program& program, CUresult code, bool mark) const;
  Result<Hash> hash(CUdeviceptr data, std::size_t bytes, CUdeviceptr into);
  Result<> hash_outputs(Program& program, CUdeviceptr into);
  Result<> remember_inputs();

  // Data.
  Result<> run_task(TaskFrame& frame, TaskEntry entry, const char* what, const std::string& set);
  std::string where(const char* entry, const std::string& set) const;
  std::vector<HostTensor> input_pointers() const;
  Result<> show_inputs();
  Result<Pair> pair_of(const Pairing& pairing, std::size_t tensor);
  Result<double*> reference_of(std::size_t tensor);

  EngineSpec spec_;
  std::function<bool()> abandoned_;
  Context context_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::unique_ptr<Buffer>> inputs_;      // by tensor: inputs, and persistent tensors' pristine values
  std::vector<Hash> input_hash_;
  bool intact_ = true;
  std::map<ProgramId, std::unique_ptr<Program>> programs_;
  std::map<std::string, Native> natives_;            // by path
  std::vector<std::unique_ptr<Memory>> reference_;   // by tensor
  bool referred_ = false;
  Signal go_, gave_up_, progress_;
  CUevent begin_ = nullptr, end_ = nullptr;
  CUdeviceptr flush_ = 0;
  std::size_t flush_bytes_ = 0;
  CUdeviceptr scratch_ = 0;                          // small results of kernels
  std::uint64_t secret_ = 0, draws_ = 0;
  void* task_ = nullptr;
  TaskEntry task_inputs_ = nullptr, task_oracle_ = nullptr, task_regions_ = nullptr;
};

// What --info prints. Driver::open() has succeeded.
Result<DeviceInfo> describe_gpu(int ordinal);

}  // namespace hone::cuda

#endif
