// Is the candidate right? Secret random seeds and every hard input set, each in a fresh process, so
// that nothing carries over from one to the next.
#ifndef HONE_JUDGE_CORRECTNESS_H
#define HONE_JUDGE_CORRECTNESS_H

#include "judge/workload.h"

namespace hone {

// Empty: right. Result errors: contract (a baseline fails its own gate, or zeros pass it),
// cancelled, and faults of the device.
Result<std::optional<Refusal>> check_correctness(const WorkloadJob& job, Session& session, Checker& checker);

}  // namespace hone

#endif
