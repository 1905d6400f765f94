// What a candidate's launches do on the GPU, by ncu (Nsight Compute).
#ifndef HONE_PROFILE_PROFILE_H
#define HONE_PROFILE_PROFILE_H

#include "profile/watch.h"

namespace hone {

// Schema hone.profile/1: the report of watch_report with `tool`; each workload that ran has besides
//   launches [{kernel, symbol, grid, block, figures: as figures.h says}]
//   raw {name, hex}: ncu's own report, or null when it is larger than 16 MiB
// The first workload of the task where none is named. Kinds besides watch_report's: environment when the host keeps its counters.
Result<nlohmann::json> profile_report(const Task& task, const Candidate& candidate, const WatchRequest& request, Bench bench);
std::string profile_text(const nlohmann::json& report);

// Writes the raw reports of a profile into `folder` and puts their paths in place of their bytes. Names in the report may be
// a service's: they are taken as file names only when they are plain.
Result<> keep_raw_reports(nlohmann::json& report, const fs::path& folder);

}  // namespace hone

#endif
