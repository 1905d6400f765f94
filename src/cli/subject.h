// What a verb looks at: a candidate of a task, in a run or outside one.
#ifndef HONE_CLI_SUBJECT_H
#define HONE_CLI_SUBJECT_H

#include <optional>
#include <string>

#include "contract/task.h"
#include "program/candidate.h"
#include "run/run.h"

namespace hone::cli {

struct Subject {
  std::optional<Run> run;       // the named one, else the one that the working directory lies in
  Task task;                    // the run's, else by name, else from kernels/<task>/ or candidates/<task>/ in the path
  bool in_run = false;          // the task is the run's
  std::string remote() const { return run ? run->manifest.remote : std::string(); }
};
// The run that a flag names, else the one that the working directory lies in.
Result<std::optional<Run>> run_of(const std::string& named);
// `task` and `run` are flags and may be empty. Kind usage when no task can be told.
Result<Subject> find_subject(const std::string& candidate, const std::string& task, const std::string& run);
// The candidate by folder, in a run also by name.
Result<Candidate> load_candidate_of(const Subject& subject, const std::string& candidate);

// With the candidate's folder before the name of its file.
Error located(Error error, const std::optional<Candidate>& candidate);

}  // namespace hone::cli

#endif
