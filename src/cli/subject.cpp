#include "cli/subject.h"

#include <algorithm>

namespace hone::cli {
namespace {

// candidates/<task>/... or kernels/<task>/<name>, as seen from the folder itself.
std::string task_in_path(const fs::path& candidate) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(candidate, ignored);
  std::string before;
  for (auto part = whole.begin(); part != whole.end(); ++part) {
    if (before == "kernels" || before == "candidates") {
      const std::vector<std::string> known = task_names();
      if (std::find(known.begin(), known.end(), part->string()) != known.end()) return part->string();
    }
    before = part->string();
  }
  return {};
}

Result<Task> find_task(const std::string& candidate, const std::string& named, const std::optional<Run>& run) {
  if (run && (named.empty() || named == run->manifest.task)) return task_of(*run);
  if (!named.empty()) return load_task(named);
  const std::string inferred = candidate == "baseline" ? "" : task_in_path(candidate);
  if (!inferred.empty()) return load_task(inferred);
  return fail(make_error(ErrorKind::usage, "which task is {} for?", candidate).with_hint("give --task; `hone task list` shows them"));
}

}  // namespace

Result<std::optional<Run>> run_of(const std::string& named) {
  if (named.empty()) return find_run_here();
  HONE_TRY(Run run, find_run(fs::path(named)));
  return std::optional<Run>(std::move(run));
}

Result<Subject> find_subject(const std::string& candidate, const std::string& task, const std::string& run) {
  Subject out;
  HONE_TRY(out.run, run_of(run));
  HONE_TRY(out.task, find_task(candidate, task, out.run));
  out.in_run = out.run && out.task.sha256 == out.run->manifest.task_sha256;
  return out;
}

Result<Candidate> load_candidate_of(const Subject& subject, const std::string& candidate) {
  return load_candidate(subject.in_run ? candidate_path(*subject.run, candidate) : fs::path(candidate));
}

Error located(Error error, const std::optional<Candidate>& candidate) {
  const std::string& file = error.place.file;
  if (!candidate || (candidate->sources.count(file) == 0 && file != "plan.cpp")) return error;
  std::error_code code;
  const fs::path near = fs::proximate(candidate->path / file, code);
  error.place.file = (near.empty() || *near.begin() == ".." ? candidate->path / file : near).string();
  return error;
}

}  // namespace hone::cli
