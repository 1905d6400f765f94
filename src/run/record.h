// Records what `hone bench` found, when it is run inside a run.
#ifndef HONE_RUN_RECORD_H
#define HONE_RUN_RECORD_H

#include <optional>

#include "judge/report.h"
#include "program/candidate.h"
#include "run/ledger.h"
#include "run/run.h"

namespace hone {

// The fault of a ledger without rows in a run that has receipts: each of them had a row.
std::optional<Error> emptied(const Run& run, const std::vector<LedgerRow>& rows, const std::vector<Error>& faults);
// A run's ledger, for writing. Kind contract when it was emptied: a run does not start afresh over its own receipts.
Result<Ledger> open_ledger(const Run& run);
// Receipt into the run's receipts (report.receipt is set), then one ledger row.
Result<LedgerRow> record_bench(const Run& run, Report& report, const Candidate& candidate);
// The fastest frontier entry's candidate, which a new one must beat; none while the frontier is empty.
Result<std::optional<Candidate>> incumbent_of(const Run& run);

}  // namespace hone

#endif
