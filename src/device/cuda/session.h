// A session of the CUDA device from the judge's side: a hone-gpu process, and what it takes to start another one when a
// program has poisoned its context or hangs. The others are loaded again, and the data made again; only what they had
// computed is lost.
#ifndef HONE_DEVICE_CUDA_SESSION_H
#define HONE_DEVICE_CUDA_SESSION_H

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/channel.h"
#include "device/device.h"

namespace hone::cuda {

struct Setup {
  fs::path libexec, helpers;          // helpers: a cubin of share/cuda/helpers.cu for this GPU
  int ordinal = 0;
};

// Without the toolchain: `helpers` is compiled already. Kind environment.
Result<std::unique_ptr<Device>> open_cuda_device(Setup setup);
// The cubin of share/cuda/helpers.cu. Kind environment: no nvcc; compile.
Result<fs::path> compile_helpers(const Toolchain& toolchain, const fs::path& share, const std::string& architecture);
// The GPU's description by `hone-gpu --info`. Kind environment.
Result<DeviceInfo> ask_info(const fs::path& libexec, int ordinal);
// `hone-gpu --once` with its requests in `folder`, as Device::watched says.
Result<WatchedCommand> watched_command(const Setup& setup, const WatchSpec& spec, const fs::path& folder);

// What every hone-gpu is told first, and with each program; the latter still without its id and name.
nlohmann::json open_request(const Setup& setup, const SessionSpec& spec);
nlohmann::json fill_request(const InputSet& set, std::uint64_t seed, std::uint32_t call);
nlohmann::json load_request(const Executable& program);
// Variables of a hone-gpu: the user's, with what the device relies on.
std::vector<std::string> gpu_environment();

class GpuProcess {
 public:
  // `transfer` is a descriptor of shared memory.
  static Result<std::unique_ptr<GpuProcess>> start(const fs::path& libexec, int transfer);
  ~GpuProcess();                      // kills it

  // Nullopt: no answer within the time, or the process is gone.
  std::optional<nlohmann::json> ask(const nlohmann::json& request, double timeout_s);

 private:
  GpuProcess(pid_t pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}
  pid_t pid_;
  Channel channel_;
};

class CudaSession final : public Session, public DeviceData {
 public:
  static Result<std::unique_ptr<Session>> open(const Setup& setup, const SessionSpec& spec);
  ~CudaSession() override;

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
  DeviceData* data() override { return this; }
  std::string describe(ProgramId id) override;
  nlohmann::json conditions() override;

  Result<> fill(const InputSet& set, std::uint64_t seed, std::uint32_t call) override;
  Result<Regions> regions() override;
  Result<double> refer() override;
  Result<std::vector<RegionSums>> sums(const Pairing& pairing, const std::vector<Region>& regions, const SumsRequest& request) override;
  Result<OddElements> odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance) override;
  Result<bool> copies(ProgramId got, const std::string& tensor, const std::string& input) override;
  Result<std::string> output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions) override;
  Result<std::string> reference_digest(const std::string& tensor) override;
  Result<> commit() override { return commit_inputs(); }
  Result<Reference> reference() override;

 private:
  struct Loaded {
    std::string name, description;
    nlohmann::json load;                              // the request that loads it
    std::optional<Error> fault;
    std::vector<std::uint64_t> poison;
    bool called = false;                              // its outputs are there
    std::map<std::size_t, std::vector<std::byte>> outputs;   // by tensor: fetched since the last call
  };

  CudaSession(Setup setup, SessionSpec spec) : setup_(std::move(setup)), spec_(std::move(spec)) {}
  Result<> set_up();
  Result<> start();                                   // a process with everything that there was
  void end();
  // `culprit`: the program whose fault it is when the process is lost.
  Result<nlohmann::json> ask(const nlohmann::json& request, double timeout_s, Loaded* culprit = nullptr);
  Result<nlohmann::json> ask_running(const nlohmann::json& request, double timeout_s, Loaded* culprit = nullptr);
  Result<ProgramId> load_as(std::string name, nlohmann::json request);
  Result<> upload_committed();
  Result<Loaded*> find(ProgramId id);
  // A program whose last call left outputs, for a pairing.
  Result<> has_outputs(const Pairing& pairing);
  Result<std::size_t> tensor_index(const std::string& tensor) const;
  void note(const nlohmann::json& sample);

  Setup setup_;
  SessionSpec spec_;
  int transfer_fd_ = -1;
  std::byte* transfer_ = nullptr;
  std::size_t transfer_bytes_ = 0;
  std::unique_ptr<GpuProcess> process_;
  std::vector<std::unique_ptr<Loaded>> programs_;
  std::vector<std::vector<std::byte>> staged_;        // by tensor: what inputs() shows; outputs: empty
  std::vector<std::vector<std::byte>> committed_;     // as staged_, of the last commit
  bool staged_fresh_ = false;                         // staged_ is what is on the device
  std::optional<nlohmann::json> filled_;              // the request of the last fill; else committed_ is what programs see
  nlohmann::json conditions_;
  std::map<std::string, double> seconds_;             // spent on requests, by verb
};

}  // namespace hone::cuda

#endif
