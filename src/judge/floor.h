// The physical floor: no kernel can move the contract's bytes or do its operations faster than the
// device's upper bounds. A time below it means that the work was not done.
#ifndef HONE_JUDGE_FLOOR_H
#define HONE_JUDGE_FLOOR_H

#include <optional>

#include "contract/task.h"
#include "device/device.h"
#include "judge/report.h"

namespace hone {

// Seconds; 0 when nothing is known.
double floor_seconds(const Workload& workload, const DeviceInfo& device);

// Kind wrong_result when the candidate's median is below the floor. When the baseline is below it as
// well the floor is what is wrong: a note instead.
std::optional<Error> below_floor(WorkloadReport& report);

}  // namespace hone

#endif
