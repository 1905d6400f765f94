// The CPU device under test, with programs compiled by g++ as the test goes.
#ifndef HONE_TESTS_DEVICE_CPU_SUBJECT_H
#define HONE_TESTS_DEVICE_CPU_SUBJECT_H

#include <map>

#include "device/subject.h"

namespace hone::testing {

class CpuSubject final : public Subject {
 public:
  // `workers` 0: the device's own choice. Null when the sandbox is refused here (reason on stdout).
  static std::unique_ptr<CpuSubject> make(SandboxMode mode = SandboxMode::on, int workers = 0);

  Device& device() override { return *device_; }
  Result<Executable> program(const std::string& name, Plan plan) override;   // kernels of the contract suite
  Result<Executable> program(const std::string& name, Plan plan, const std::string& source);
  // A shared object from C++ text, by content.
  Result<fs::path> compile(const std::string& source, const std::vector<std::string>& flags = {});

 private:
  explicit CpuSubject(Sandbox sandbox) : sandbox_(std::move(sandbox)) {}
  Sandbox sandbox_;
  std::unique_ptr<Device> device_;
};

}  // namespace hone::testing

#endif
