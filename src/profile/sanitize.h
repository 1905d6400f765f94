// A candidate's launches under compute-sanitizer.
#ifndef HONE_PROFILE_SANITIZE_H
#define HONE_PROFILE_SANITIZE_H

#include "profile/watch.h"

namespace hone {

// memcheck: accesses outside of tensors and workspaces (by one element, too) or misaligned; racecheck: shared memory;
// synccheck: barriers; initcheck: reading outputs and workspaces before they are written.
const std::vector<std::string>& sanitizer_tools();

// Schema hone.sanitize/1: the report of watch_report with `tool`, `findings`: how many; each workload that ran has besides
//   tools [{tool, seconds, findings, errors: as the tool counts, threads each}]
//   findings [as finding.h says, merged by place]
// `tools`: some of sanitizer_tools(); empty: all. The smallest workload of the task where none is named: a tool makes a kernel
// tens to hundreds of times slower. Kind usage: an unknown tool.
Result<nlohmann::json> sanitize_report(const Task& task, const Candidate& candidate, const std::vector<std::string>& tools,
                                       const WatchRequest& request, Bench bench);
std::string sanitize_text(const nlohmann::json& report);

}  // namespace hone

#endif
