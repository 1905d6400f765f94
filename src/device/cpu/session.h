// A session of the CPU device: inputs in shared memory, one runner process for each program.
#ifndef HONE_DEVICE_CPU_SESSION_H
#define HONE_DEVICE_CPU_SESSION_H

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/cpu/arena.h"
#include "device/cpu/runner.h"
#include "device/cpu/suspicion.h"
#include "device/cpu/tripwire.h"
#include "device/device.h"

namespace hone::cpu {

// Input memory and a runner that is already started for it; passed on from session to session.
class RunnerPool {
 public:
  explicit RunnerPool(const RunnerSetup& setup) : setup_(setup) {}
  ~RunnerPool() { settle(); }

  // Begins to start a runner for this input memory, unless there is one.
  void prepare(std::shared_ptr<SharedMemory> inputs);
  Result<std::unique_ptr<Runner>> take(const std::shared_ptr<SharedMemory>& inputs);
  // Waits until nothing is being started: a measurement follows.
  void settle();
  // Memory that no session uses, if possible with a runner for it.
  Result<std::shared_ptr<SharedMemory>> inputs();

 private:
  RunnerSetup setup_;
  std::shared_ptr<SharedMemory> inputs_;   // what the spare runner is for
  std::future<Result<std::unique_ptr<Runner>>> starting_;
  std::optional<Result<std::unique_ptr<Runner>>> spare_;
};

// What the sessions of a device share.
struct Machine {
  Sandbox sandbox;
  Topology topology;
  CacheFlusher flusher;
  DeviceInfo info;
  RunnerPool pool;
  Machine(const Sandbox& box, const fs::path& libexec, Topology found)
      : sandbox(box), topology(std::move(found)), flusher(topology), info(describe_machine(topology, flusher)),
        pool(RunnerSetup{sandbox, libexec, topology}) {}
};

class CpuSession final : public Session {
 public:
  static Result<std::unique_ptr<Session>> open(std::shared_ptr<Machine> machine, const SessionSpec& spec);
  ~CpuSession() override;

  Result<ProgramId> load(const Executable& program) override;
  Result<ProgramId> load(const NativeBaseline& baseline) override;
  void unload(ProgramId id) override;
  std::vector<HostTensor> inputs() override;
  Result<> commit_inputs() override;
  Result<bool> inputs_intact() override;
  Result<CallResult> call(ProgramId id, const CallOptions& options) override;
  Result<std::span<const std::byte>> output(ProgramId id, const std::string& tensor) override;
  bool is_poison(ProgramId id, const std::string& tensor, std::size_t offset) override;
  Result<std::vector<GuardDamage>> guards(ProgramId id) override;
  std::string describe(ProgramId id) override;

 private:
  enum class Use { input, output, persistent, workspace, zeroed };
  struct Buffer {
    Use use = Use::output;
    std::size_t index = 0;               // in the layout of its arena
    std::size_t element = 8;
    std::uint64_t poison = 0;            // of the last call
    const std::byte* pristine = nullptr; // persistent tensors
  };
  struct Loaded {
    Labels labels;
    std::unique_ptr<Layout> layout;
    std::vector<Buffer> buffers;         // tensors of the contract in order, then workspaces
    std::optional<std::size_t> scratch;  // first of the workers' shared memories in the layout
    std::unique_ptr<Runner> runner;
    std::optional<Error> fault;          // it is gone, and why
    std::string description;
    std::uint32_t slot = 0, calls = 0;
    double idle_cpu_s = 0;               // its CPU clock when it was last seen asleep
    double owed_s = 0;                   // CPU time used between calls, charged to the next one
    bool trusted = false;                // a task's own program
    Suspicion suspicion;                 // of CPU time outside the timed span
  };

  CpuSession(std::shared_ptr<Machine> machine, SessionSpec spec)
      : machine_(std::move(machine)), spec_(std::move(spec)) {}
  Result<> set_up();
  Result<ProgramId> start(std::unique_ptr<Loaded> loaded, nlohmann::json blob, const std::vector<fs::path>& objects);
  nlohmann::json add_buffers(Loaded& loaded, const std::vector<PlanWorkspace>& workspaces) const;
  Result<Loaded*> find(ProgramId id);
  Result<std::size_t> own_tensor(const std::string& tensor) const;
  std::byte* bytes_of(const Loaded& loaded, const Buffer& buffer, std::size_t slot) const;
  void refill(Loaded& loaded);
  // Every buffer that the next call reads or writes.
  std::vector<std::span<const std::byte>> used_by(const Loaded& loaded) const;
  void await_quiet() const;
  void lay(std::optional<Tripwires>& tripwires, const Loaded& loaded);
  std::optional<Error> ring(Loaded& loaded, CallResult& result, std::optional<Tripwires>& tripwires);
  bool await_sleep(const Loaded& loaded) const;
  static std::optional<Error> suspect(Loaded& loaded, std::string reason);
  void check_asleep(Loaded& loaded);

  std::shared_ptr<Machine> machine_;
  SessionSpec spec_;
  std::vector<std::byte> canary_;        // a page of secret bytes
  std::uint64_t secret_ = 0, draws_ = 0;
  std::unique_ptr<Layout> input_layout_;
  std::shared_ptr<SharedMemory> input_memory_;
  std::uint32_t input_slot_ = 0;
  std::vector<std::vector<std::byte>> staged_;   // by tensor: what the judge fills; outputs: empty
  std::vector<std::size_t> input_index_;         // by tensor: in input_layout_
  std::vector<std::unique_ptr<Loaded>> programs_;
};

}  // namespace hone::cpu

#endif
