// Records what `hone bench` found, when it is run inside a run.
#ifndef HONE_RUN_RECORD_H
#define HONE_RUN_RECORD_H

#include <optional>

#include "judge/report.h"
#include "program/candidate.h"
#include "run/ledger.h"
#include "run/run.h"

namespace hone {

// Receipt into the run's receipts (report.receipt is set), then one ledger row.
Result<LedgerRow> record_bench(const Run& run, Report& report, const Candidate& candidate);
// The fastest frontier entry's candidate, which a new one must beat; none while the frontier is empty.
Result<std::optional<Candidate>> incumbent_of(const Run& run);

}  // namespace hone

#endif
