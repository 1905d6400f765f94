// The ledger (schema hone.ledger/1): ledger.jsonl, append-only, one JSON object a line. It is the
// run's record and the only state that a resumed run starts from.
//
// Every line ends in "chain": the hash of the line's other bytes, which include "prev", the chain of
// the line before. So an edited, lost or torn line is noticed and named, and the rest stays readable.
// One write(2) a line under a lock, synced; a line torn by a kill is moved to ledger.torn at the next
// open, and a note says so.
#ifndef HONE_RUN_LEDGER_H
#define HONE_RUN_LEDGER_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

// kind           data
// run_started    agent, seed, budget, target, resumed
// evaluation_started  purpose (search, remeasure), sha256, candidate, params
// evaluation     by (tuner, bench), and an Experiment (run/experiment.h)
// remeasure      the same, deliberately of a source measured before
// evaluation_cancelled  sha256: a start that does not count as a try
// frontier_add   an entry (run/frontier.h)
// frontier_drop  name, why
// run_ended      reason, exit, evaluations
// note           text
// turn_started   turn, attempt, role, agent, steers (rows)
// turn_ended     turn, attempt, role, agent, end, cause, reason, counted, failed, usage, wall_s (run/turns.h)
// steer          text: a person's word for the next turn
// finding        text, by: what an agent wants the next one to know
// paused, unpaused
// record_restored  path, what: somebody changed the record or the task's files; they are as they were
struct LedgerRow {
  std::int64_t seq = 0;          // from 1
  std::string time, kind;
  double elapsed_s = 0;          // of the run, cumulative over sessions
  nlohmann::json data;
};

struct LedgerText {
  std::vector<LedgerRow> rows;   // those that are intact, in order
  std::vector<Error> faults;     // damaged or missing lines, located; never fatal
  std::string last_chain;
  std::int64_t last_seq = 0;
  std::size_t whole_bytes = 0;   // up to the last newline
  std::size_t torn_bytes = 0;    // after it
};

// Hostile input. `file` is what faults name.
LedgerText parse_ledger(std::string_view text, const std::string& file);
// A missing file is an empty ledger.
Result<LedgerText> read_ledger(const fs::path& path);

class Ledger {
 public:
  // For writing: moves a torn tail aside and notes it.
  static Result<Ledger> open(const fs::path& path);
  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&&) = delete;
  ~Ledger();

  // Other processes may append too: the row that was written is returned with its number. When the
  // disk is full nothing of the row stays.
  Result<LedgerRow> append(const std::string& kind, double elapsed_s, nlohmann::json data);

  // From now on this object alone writes. A file that no longer holds the very bytes that it knows is put aside as
  // ledger.altered before the next row and written anew, and a row record_restored says so.
  Result<> own();
  // The same at any time; true when the file had to be restored.
  Result<bool> mend(double elapsed_s);

  const std::vector<LedgerRow>& rows() const { return text_.rows; }
  const std::vector<Error>& faults() const { return text_.faults; }

 private:
  Ledger(fs::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<> catch_up();           // under the lock: rows that others appended, a torn tail
  bool intact() const;
  Result<LedgerRow> write_row(const std::string& kind, double elapsed_s, nlohmann::json data);

  fs::path path_;
  int fd_;
  LedgerText text_;
  bool owned_ = false;
  std::string bytes_;            // of the file, once owned
};

}  // namespace hone

#endif
