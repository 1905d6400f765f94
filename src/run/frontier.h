// The frontier: candidates that a passing receipt admitted. The ledger says which; the worktree
// holds their source with frozen parameter values, and a generated index.json (hone.frontier/1).
#ifndef HONE_RUN_FRONTIER_H
#define HONE_RUN_FRONTIER_H

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "judge/report.h"
#include "program/candidate.h"
#include "run/ledger.h"
#include "run/run.h"

namespace hone {

struct FrontierEntry {
  std::string name, sha256, receipt;               // receipt id in the run's receipts
  double geomean = 0;
  std::optional<Interval> geomean_ci;
  std::map<std::string, double> ratios;            // by workload
  Parameters params;
  std::string family, parent, device, added;
  std::int64_t row = 0;                            // of the ledger
};
void to_json(nlohmann::json& out, const FrontierEntry& entry);
void from_json(const nlohmann::json& in, FrontierEntry& entry);

// From the ledger's adds and drops, fastest first.
std::vector<FrontierEntry> frontier_of(const std::vector<LedgerRow>& rows);

struct Lineage {
  std::string family, parent;
};
// Admits `candidate` by a receipt (id or path): a judgement of this run's ledger wrote it, every
// workload passed, the geomean is there and follows from the samples, the task is the run's, and the
// receipt's sources are the very bytes of `candidate`; else kind contract.
// Adding the same source again replaces its entry. `name` empty: the candidate's, made unique.
Result<FrontierEntry> frontier_add(const Run& run, Ledger& ledger, const Candidate& candidate, const std::string& receipt,
                                   const Lineage& lineage, double elapsed_s, const std::string& name = {});
// The same as somebody asks for it: `receipt` empty means the newest full measurement of these very bytes that passed
// everywhere; a receipt that measured other values of the candidate's parameters says which.
Result<FrontierEntry> frontier_add_asked(const Run& run, Ledger& ledger, Candidate candidate, std::string receipt, const Lineage& lineage,
                                         double elapsed_s, const std::string& name = {});
Result<> frontier_drop(const Run& run, Ledger& ledger, const std::string& name, const std::string& why, double elapsed_s);
// Writes what the ledger says into the worktree (sources, index.json) and commits it; mends what a
// kill between ledger and worktree, or a careless hand, left behind.
Result<> sync_frontier(const Run& run, const std::vector<LedgerRow>& rows, const std::string& message);
// Entries whose files in the worktree are no longer the admitted bytes, and "index.json" when it is not theirs.
std::vector<std::string> altered_entries(const Run& run, const std::vector<FrontierEntry>& entries);

// The candidate as the receipt holds it, not as the worktree does.
Result<Candidate> candidate_of_entry(const Run& run, const FrontierEntry& entry);

// index.json's content: schema, task, generated, entries.
nlohmann::json frontier_index(const Run& run, const std::vector<FrontierEntry>& entries);

// One side of `frontier diff`: an entry, or a receipt.
struct FrontierSide {
  std::string label;
  Candidate candidate;
  std::optional<double> geomean;                   // none unless every workload passed
  std::map<std::string, std::pair<std::string, std::optional<double>>> workloads;   // verdict, ratio
};
Result<FrontierSide> frontier_side(const Run& run, const std::vector<FrontierEntry>& entries, const std::string& name);

}  // namespace hone

#endif
