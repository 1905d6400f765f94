// Receipts (schema hone.receipt/1): everything that is needed to check a claim again. Hashes of the
// very bytes that were compiled and run, device and clocks, seeds, raw samples, sandbox mode, and
// the candidate's sources themselves, so that a receipt can be verified on another machine.
#ifndef HONE_JUDGE_RECEIPT_H
#define HONE_JUDGE_RECEIPT_H

#include "judge/judge.h"

namespace hone {

// Writes report.receipt_body to `folder`/<id>.json and sets report.receipt; the id is the body's hash.
Result<> write_receipt(Report& report, const fs::path& folder);
// Schema-checked; the id is checked against the bytes. `name` is a path, or an id in
// `folder`, or at least 8 digits that one id there begins with.
Result<nlohmann::json> read_receipt(const std::string& name, const fs::path& folder);
// Whether what the report says follows from the receipt's own samples: how many workloads passed, the
// ratio of each that did, their geometric mean. Else kind contract. An id shows edits, not this.
Result<> check_figures(const nlohmann::json& receipt);
// Rebuilds the candidate from the sources that the receipt holds.
Result<Candidate> candidate_of(const nlohmann::json& receipt);

struct Verification {
  bool confirmed = false;
  std::vector<std::string> differences;   // what differs and why it matters: hashes, verdicts, intervals apart
  Report again;
};
// Judges the receipt's candidate again with fresh secret seeds and compares.
// A cancelled one is not confirmed.
Result<Verification> verify(const nlohmann::json& receipt, Bench bench, const Progress& progress,
                            const std::atomic<bool>* cancel = nullptr);

}  // namespace hone

#endif
