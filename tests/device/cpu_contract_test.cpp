#include "device/contract.h"
#include "device/cpu_subject.h"

namespace hone::testing {
namespace {

std::unique_ptr<Subject> jailed() { return CpuSubject::make(); }
std::unique_ptr<Subject> every_core() {   // the clock shares a core with a worker: waiting sleeps
  return CpuSubject::make(SandboxMode::on, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}
std::unique_ptr<Subject> without_jail() { return CpuSubject::make(SandboxMode::off); }

std::string subject_name(const ::testing::TestParamInfo<MakeSubject>& param) {
  constexpr const char* kNames[] = {"Jailed", "EveryCore", "WithoutJail"};
  return kNames[param.index];
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceContract,
                         ::testing::Values(MakeSubject(jailed), MakeSubject(every_core), MakeSubject(without_jail)),
                         subject_name);

}  // namespace
}  // namespace hone::testing
