// One figure for a task: only over all of its workloads, and only when each of them passes.
#ifndef HONE_JUDGE_CONCLUDE_H
#define HONE_JUDGE_CONCLUDE_H

#include <vector>

#include "judge/workload.h"

namespace hone {

// Fills in geomean, its interval and, when it is asked for, the decision: against the incumbent when
// there is one, else against the baseline. Leaves them empty where a workload is missing or did not
// pass, and interval and decision where one has too few samples.
void conclude(const std::vector<WorkloadOutcome>& outcomes, double min_effect, bool incumbent, bool decides, Report& report);

}  // namespace hone

#endif
