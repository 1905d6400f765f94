#include "run/record.h"

#include <nlohmann/json.hpp>

#include "judge/receipt.h"
#include "run/experiment.h"
#include "run/frontier.h"
#include "run/launcher.h"
#include "run/progress.h"

namespace hone {

std::optional<Error> emptied(const Run& run, const std::vector<LedgerRow>& rows, const std::vector<Error>& faults) {
  std::error_code code;
  // One receipt alone may be there: whoever wrote it was killed before its row, or is about to write it.
  if (!rows.empty() || !faults.empty() || std::distance(fs::directory_iterator(run.receipts(), code), fs::directory_iterator()) < 2) return std::nullopt;
  return make_error(ErrorKind::contract, "the ledger is empty, though receipts of this run are there: it was removed or replaced")
      .at({run.ledger().string()})
      .with_hint("`hone verify RECEIPT` judges a receipt's candidate again; work goes on in a new run, by `hone init`");
}

Result<Ledger> open_ledger(const Run& run) {
  HONE_TRY(Ledger ledger, Ledger::open(run.ledger()));
  if (auto error = emptied(run, ledger.rows(), ledger.faults())) return fail(*std::move(error));
  return ledger;
}

Result<LedgerRow> record_bench(const Run& run, Report& report, const Candidate& candidate) {
  HONE_TRY(Ledger ledger, open_ledger(run));
  HONE_CHECK(write_receipt(report, run.receipts()));
  nlohmann::json data = experiment_of(report, candidate);
  data["by"] = "bench";
  // Time that no agent spent: the run's clock stands still.
  return ledger.append("evaluation", progress_of(ledger.rows()).elapsed_s, std::move(data));
}

Result<std::int64_t> record_finding(const Run& run, const std::string& text, const std::atomic<bool>* cancel) {
  HONE_TRY(const auto answer, ask_launcher(run, {{"do", "finding"}, {"text", text}}, {}, cancel));
  if (answer) return answer->value("row", std::int64_t{0});
  HONE_CHECK(check_turn_has_launcher());
  HONE_TRY(Ledger ledger, open_ledger(run));
  HONE_TRY(const LedgerRow row, ledger.append("finding", progress_of(ledger.rows()).elapsed_s, {{"text", text}, {"by", "agent"}}));
  return row.seq;
}

Result<std::optional<Candidate>> incumbent_of(const Run& run) {
  HONE_TRY(const LedgerText ledger, read_ledger(run.ledger()));
  const auto frontier = frontier_of(ledger.rows);
  if (frontier.empty()) return std::optional<Candidate>();
  HONE_TRY(Candidate candidate, candidate_of_entry(run, frontier.front()));
  return std::optional<Candidate>(std::move(candidate));
}

}  // namespace hone
