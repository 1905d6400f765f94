// The data of a device whose tensors lie in this process's memory: filled and asked through the task's code.
#ifndef HONE_JUDGE_HOST_DATA_H
#define HONE_JUDGE_HOST_DATA_H

#include <optional>
#include <string>
#include <vector>

#include "contract/task.h"
#include "device/data.h"
#include "device/device.h"

namespace hone {

class HostData final : public DeviceData {
 public:
  HostData(const Workload& workload, const TaskCode& code, Session& session) : workload_(workload), code_(code), session_(session) {}

  Result<> fill(const InputSet& set, std::uint64_t seed, std::uint32_t call) override;
  Result<> commit() override;
  Result<Regions> regions() override { return code_.regions(workload_, session_.inputs()); }
  Result<double> refer() override;
  Result<Reference> reference() override;
  Result<std::vector<RegionSums>> sums(const Pairing& pairing, const std::vector<Region>& regions, const SumsRequest& request) override;
  Result<OddElements> odd(const Pairing& pairing, const Region& region, const Tolerance& tolerance) override;
  Result<bool> copies(ProgramId got, const std::string& tensor, const std::string& input) override;
  Result<std::string> output_digest(ProgramId got, const std::string& tensor, const std::vector<Region>& regions) override;
  Result<std::string> reference_digest(const std::string& tensor) override;

 private:
  template <class F>
  auto with(const Pairing& pairing, F&& f) -> decltype(f(std::declval<class HostPair&>()));
  Result<const TensorShape*> shape_of(const std::string& tensor) const;
  Result<std::span<const std::byte>> output(ProgramId id, const TensorShape& shape);

  const Workload& workload_;
  const TaskCode& code_;
  Session& session_;
  std::optional<Reference> reference_;
};

}  // namespace hone

#endif
