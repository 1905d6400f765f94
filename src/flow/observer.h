// An agent that watches another's run: it is given copies of the record in a folder of its own and writes a summary. It
// reaches nothing of the run, and what it says is held against the ledger: a statement names the row that shows it.
#ifndef HONE_FLOW_OBSERVER_H
#define HONE_FLOW_OBSERVER_H

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "run/summary.h"

namespace hone {

struct Checked {
  std::string text;                      // with a mark after each statement that shows nothing
  int statements = 0, unproved = 0;
};
// A statement is a line that says something: no heading, no blank line. Cited is "row 12", "rows 3, 12"; marked are
// "[cites no row]" and "[no such row: 99]".
Checked check_statements(const std::string& text, const std::set<std::int64_t>& rows);

struct Observation {
  Checked summary;
  TurnResult result;
  fs::path file;                         // RUN/watch/summary-000001.md
};
struct ObserverOptions {
  std::vector<std::string> env;          // NAME=value, passed on
  bool confined = true;
  bool all_said = false;                 // the summary is all that it says, not its last word alone
  TurnLimits limits;
  const std::atomic<bool>* cancel = nullptr;
};
// One look. Kind environment when the program did not come to an end that it could be understood by.
Result<Observation> observe(const Summary& summary, Driver& driver, const ObserverOptions& options);

constexpr std::size_t kSummaries = 48;   // kept of a run

}  // namespace hone

#endif
