#include "agent/judging.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "judge/receipt.h"

namespace hone {

using nlohmann::json;

bool of_the_candidate(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::not_found:
    case ErrorKind::contract:       // the task's: a candidate that breaks its own was not loaded
    case ErrorKind::environment:
    case ErrorKind::sandbox_unavailable:
    case ErrorKind::no_compiler:
    case ErrorKind::io:
    case ErrorKind::unauthorized:
    case ErrorKind::unavailable:
    case ErrorKind::quota:
      return false;
    default:
      return true;
  }
}

namespace {

// A workload that the machine kept from being judged.
const Error* fault_of_the_machine(const Report& report) {
  for (const WorkloadReport& each : report.workloads)
    if (each.error && !of_the_candidate(each.error->kind)) return &*each.error;
  return nullptr;
}

}  // namespace

Result<std::optional<Judged>> judge_once(const Judging& where, const Evaluation& evaluation, bool remeasure, int tries,
                                         const std::function<Result<>(Experiment& experiment, json& extra)>& complete) {
  const Candidate& candidate = evaluation.candidate;
  const std::string purpose = remeasure ? "remeasure" : "search";
  Judged judged;
  if (tries >= kMaxAttempts) {
    judged.experiment = failed_experiment(
        make_error(ErrorKind::cancelled, "interrupted {} times while it was judged ({})", tries, params_text(candidate.values))
            .with_hint("judge it alone with `hone bench` to see why"),
        candidate, where.total);
    judged.experiment.attempts = tries;
  } else {
    HONE_CHECK(where.ledger.append("evaluation_started", where.elapsed_s(),
                                   {{"purpose", purpose},
                                    {"candidate", candidate.name},
                                    {"sha256", candidate.sha256},
                                    {"params", candidate.values},
                                    {"attempt", tries + 1}}));
    const double start = now_s();
    auto report = where.evaluator.evaluate(evaluation);
    if (const Error* fault = where.strict && report ? fault_of_the_machine(*report) : nullptr) report = fail(Error(*fault));
    const bool stopped = where.cancel != nullptr && where.cancel->load() && (!report || report->cancelled);
    if (stopped || (!report && !of_the_candidate(report.error().kind))) {
      HONE_CHECK(where.ledger.append("evaluation_cancelled", where.elapsed_s(), {{"purpose", purpose}, {"sha256", candidate.sha256}}));
      if (stopped) return std::optional<Judged>();
      return fail(std::move(report).error());
    }
    if (report) {
      HONE_CHECK(write_receipt(*report, where.run.receipts()));
      judged.experiment = experiment_of(*report, candidate);
      judged.report = *std::move(report);
    } else {
      judged.experiment = failed_experiment(report.error(), candidate, where.total);
    }
    judged.experiment.attempts = tries + 1;
    judged.experiment.seconds = std::round((now_s() - start) * 1000) / 1000;
  }
  json extra = json::object();
  HONE_CHECK(complete(judged.experiment, extra));
  json data = judged.experiment;
  data.update(extra);
  HONE_TRY(const LedgerRow row, where.ledger.append(remeasure ? "remeasure" : "evaluation", where.elapsed_s(), std::move(data)));
  judged.row = row.seq;
  return std::optional<Judged>(std::move(judged));
}

}  // namespace hone
