#include <cerrno>
#include <cstdlib>
#include <unistd.h>

#include "device/cpu/session.h"
#include "device/device.h"

namespace hone {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::shared_ptr<cpu::Machine> machine) : machine_(std::move(machine)) {}
  const DeviceInfo& info() const override { return machine_->info; }
  Result<std::unique_ptr<Session>> open(const SessionSpec& spec) override {
    return cpu::CpuSession::open(machine_, spec);
  }

 private:
  std::shared_ptr<cpu::Machine> machine_;
};

// HONE_WORKERS, for tests and for machines that are shared.
Result<int> workers_from_environment() {
  const char* text = std::getenv("HONE_WORKERS");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < 1 || value > static_cast<long>(cpu::kMaxWorkers))
    return fail(ErrorKind::usage, "HONE_WORKERS is \"{}\", not a number of worker threads from 1 to {}", text,
                cpu::kMaxWorkers);
  return static_cast<int>(value);
}

}  // namespace

Result<std::unique_ptr<Device>> make_cpu_device(const Sandbox& sandbox, const fs::path& libexec,
                                                CpuDeviceOptions options) {
  int workers = options.workers;
  if (workers == 0) {
    HONE_TRY(workers, workers_from_environment());
  }
  if (::access((libexec / "hone-runner").c_str(), X_OK) != 0)
    return fail(
        make_error(ErrorKind::environment, "{} is not there or cannot be executed", (libexec / "hone-runner").string())
            .with_hint(
                "an installation is the hone binary and share/hone beside it; HONE_SHARE names another share folder"));
  HONE_TRY(cpu::Topology topology, cpu::find_topology(workers));
  auto machine = std::make_shared<cpu::Machine>(sandbox, libexec, std::move(topology));
  // By the time that a candidate is compiled, a runner waits for it.
  HONE_TRY(auto inputs, machine->pool.inputs());
  machine->pool.prepare(std::move(inputs));
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(std::move(machine)));
}

}  // namespace hone
