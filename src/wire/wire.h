// What the service and its clients say to each other about candidates and judgements, as JSON
// (share/schema/job.json).
#ifndef HONE_WIRE_WIRE_H
#define HONE_WIRE_WIRE_H

#include <nlohmann/json.hpp>

#include "contract/task.h"
#include "judge/judge.h"
#include "program/candidate.h"

namespace hone::wire {

// A job's body against share/schema/job.json, its request by kind. Kind contract, naming the field.
Result<> check_job(const nlohmann::json& body);

// {"name", "files": {path: text or {"hex": ...}}}: the candidate's frozen configuration.
nlohmann::json candidate_json(const Candidate& candidate);
// The same way back, from hostile input that obeys the schema; a service tells its device processes besides where a
// blob lies: {"file": path, "sha256": ...}. `values` chooses among the listed
// values of its parameters. Kind contract as load_candidate, and for names that are no plain
// relative paths; limits as for a folder (base/fs.h, TreeLimits).
Result<Candidate> candidate_from_json(const nlohmann::json& in);

// The request of a job of kind bench: task and its hash, candidate, and what JudgeRequest says.
nlohmann::json bench_request(const Task& task, const JudgeRequest& request);
// Without `cancel` and `progress`.
Result<JudgeRequest> judge_request_from(const nlohmann::json& in);
// The request's task as it is here. Kind conflict when the client's has another hash.
Result<Task> task_from(const nlohmann::json& in);

}  // namespace hone::wire

#endif
