#include "judge/floor.h"

#include <algorithm>

namespace hone {

double floor_seconds(const Workload& workload, const DeviceInfo& device) {
  const double by_bytes = device.peak_bytes > 0 ? workload.bytes / device.peak_bytes : 0;
  const double by_flops = device.peak_flops > 0 ? workload.flops / device.peak_flops : 0;
  return std::max(by_bytes, by_flops);
}

std::optional<Error> below_floor(WorkloadReport& report) {
  if (!report.candidate_s || !report.baseline_s || *report.candidate_s >= report.floor_s) return std::nullopt;
  if (*report.baseline_s < report.floor_s) {
    report.notes.push_back(fmt::format("the physical floor of {:.2f} us is above the baseline's time: the task's work counts or the device's peaks are wrong",
                                       1e6 * report.floor_s));
    return std::nullopt;
  }
  report.notes.push_back("below the physical floor");
  return make_error(ErrorKind::wrong_result, "faster than physically possible: {:.2f} us < floor {:.2f} us",
                    1e6 * *report.candidate_s, 1e6 * report.floor_s)
      .with_hint("the floor is the contract's bytes and operations at the device's peak; work was left out or done elsewhere");
}

}  // namespace hone
