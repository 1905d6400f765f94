// A run directory and judgements made by hand, for tests of what is recorded about them.
#ifndef HONE_TESTS_RUN_FAKE_RUN_H
#define HONE_TESTS_RUN_FAKE_RUN_H

#include <map>
#include <optional>
#include <string>

#include "judge/report.h"
#include "program/candidate.h"
#include "run/run.h"

namespace hone::testing {

// The folders, manifest, empty ledger and repository of a run of task "toy".
Run fake_run(const std::string& name);

// A candidate folder with the given candidate.yaml, loaded.
Candidate fake_candidate(const fs::path& parent, const std::string& name, const std::string& settings);

// A report over workloads: a ratio passes, nullopt fails.
Report fake_report(const Candidate& candidate, const std::map<std::string, std::optional<double>>& ratios,
                   std::optional<Decision> decision = std::nullopt);
// The same, every workload in ERROR.
Report fake_error_report(const Candidate& candidate, const Error& error);

// What the judge would have written of it.
nlohmann::json fake_receipt(const Report& report, const Candidate& candidate, const std::string& task_sha256);

}  // namespace hone::testing

#endif
