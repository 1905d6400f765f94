#include "run/record.h"

#include <nlohmann/json.hpp>

#include "judge/receipt.h"
#include "run/experiment.h"
#include "run/frontier.h"
#include "run/progress.h"

namespace hone {

Result<LedgerRow> record_bench(const Run& run, Report& report, const Candidate& candidate) {
  HONE_CHECK(write_receipt(report, run.receipts()));
  HONE_TRY(Ledger ledger, Ledger::open(run.ledger()));
  nlohmann::json data = experiment_of(report, candidate);
  data["by"] = "bench";
  // Time that no agent spent: the run's clock stands still.
  return ledger.append("evaluation", progress_of(ledger.rows()).elapsed_s, std::move(data));
}

Result<std::optional<Candidate>> incumbent_of(const Run& run) {
  HONE_TRY(const LedgerText ledger, read_ledger(run.ledger()));
  const auto frontier = frontier_of(ledger.rows);
  if (frontier.empty()) return std::optional<Candidate>();
  HONE_TRY(Candidate candidate, candidate_of_entry(run, frontier.front()));
  return std::optional<Candidate>(std::move(candidate));
}

}  // namespace hone
