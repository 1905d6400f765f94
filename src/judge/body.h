// What a receipt holds besides the report: made while judging, written by judge/receipt.h.
#ifndef HONE_JUDGE_BODY_H
#define HONE_JUDGE_BODY_H

#include <nlohmann/json.hpp>
#include <vector>

#include "judge/judge.h"
#include "judge/prepare.h"
#include "judge/workload.h"

namespace hone {

// The sources, settings and hash of a candidate; bytes that are no UTF-8 are kept as hex.
nlohmann::json candidate_body(const Candidate& candidate);

struct BodyParts {
  const Task& task;
  const JudgeRequest& request;
  Bench bench;
  std::uint64_t seed = 0;
  nlohmann::json binaries = {};                  // by program: what prepare says
  std::vector<nlohmann::json> workloads = {};    // facts of each
  nlohmann::json seconds = {};                    // by step
};
nlohmann::json receipt_body(const Report& report, BodyParts parts);

}  // namespace hone

#endif
