// A run's record while its launcher works: one writer, one clock, several threads. What somebody else changes in it, or
// in the task's files that agents are shown, is put back and told.
#ifndef HONE_FLOW_BOOKS_H
#define HONE_FLOW_BOOKS_H

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "run/ledger.h"
#include "run/progress.h"
#include "run/run.h"
#include "run/safe.h"

namespace hone {

class Books {
 public:
  // `ledger` becomes the only writer. `shown`: files of the worktree that are not the agents' to change, by path
  // (run/worktree.h). `before_s`: the run's clock so far, where the ledger does not know all of it.
  static Result<std::unique_ptr<Books>> open(const Run& run, Ledger ledger, const std::map<std::string, std::string>& shown,
                                             double before_s = 0);

  const Run& run() const { return run_; }
  // Whoever looks at the ledger, or writes to it, holds this.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }
  Ledger& ledger() { return ledger_; }

  // These take the hold themselves.
  Result<LedgerRow> append(const std::string& kind, nlohmann::json data);
  RunProgress progress();
  // Puts back what changed, one row record_restored each; and the frontier's files.
  Result<> mend();
  // For a caller that has the hold: without the frontier.
  Result<> mend_held();

  // Seconds of the run, cumulative. The clock stands while the run is paused.
  double elapsed_s() const;
  void stop_clock();
  void start_clock();

 private:
  Books(const Run& run, Ledger ledger, Safe safe) : run_(run), ledger_(std::move(ledger)), safe_(std::move(safe)) {}

  const Run& run_;
  Ledger ledger_;
  Safe safe_;
  std::mutex mutex_;
  mutable std::mutex clock_;
  std::int64_t kept_rows_ = 0;   // rows whose receipts are kept
  double before_s_ = 0, began_s_ = 0;
  bool stopped_ = false;
};

}  // namespace hone

#endif
