// Records what `hone bench` found, when it is run inside a run.
#ifndef HONE_RUN_RECORD_H
#define HONE_RUN_RECORD_H

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

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
// What an agent wants whoever works next to know, as a row `finding`: a claim, no evidence. The launcher writes it when one works.
// Its row's number.
Result<std::int64_t> record_finding(const Run& run, const std::string& text, const std::atomic<bool>* cancel = nullptr);
// The fastest frontier entry's candidate, which a new one must beat; none while the frontier is empty.
Result<std::optional<Candidate>> incumbent_of(const Run& run);

}  // namespace hone

#endif
