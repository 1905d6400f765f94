#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "judge/report.h"
#include "mcp/tools.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

constexpr double kLongestWait_s = 50;      // below the 60 s after which many clients end a call
constexpr std::size_t kJobs = 200;

json number(const std::string& description) { return nullable("number", description); }

json bench_output() {
  const json error = {{"type", json::array({"object", "null"})}, {"description", "kind, message, hint, place"}};
  const json workload = {{"type", "object"},
                         {"properties",
                          {{"id", {{"type", "string"}}},
                           {"verdict", {{"type", "string"}, {"description", "PASS, FAIL, FLAKY or ERROR"}}},
                           {"error", error},
                           {"ratio", number("baseline time / candidate time: above 1 is faster")},
                           {"ratio_ci", {{"type", json::array({"array", "null"})}, {"description", "its 95% interval"}}},
                           {"baseline_us", number("microseconds")},
                           {"candidate_us", number("microseconds")},
                           {"samples", {{"type", "integer"}}}}}};
  return object_schema({{"candidate", {{"type", "string"}}},
                        {"task", {{"type", "string"}}},
                        {"device", {{"type", "string"}}},
                        {"passed", {{"type", "integer"}}},
                        {"total", {{"type", "integer"}}},
                        {"geomean", number("speedup over the baseline; null unless every workload of the task passed")},
                        {"geomean_ci", {{"type", json::array({"array", "null"})}}},
                        {"decision", nullable("string", "KEEP, REJECT or AMBIGUOUS against what had to be beaten")},
                        {"receipt", nullable("string", "what the judgement rests on")},
                        {"said", list_schema({{"type", "string"}}, "what else is to know: retained, budget spent, warnings")},
                        {"workloads", list_schema(workload, "one a workload")}});
}

json bench_input(const Workplace& place) {
  json members = subject_members(place, "folder of the candidate (in a run also its bare name in scratch or frontier), or `baseline`");
  members["budget_s"] = {{"type", "number"}, {"exclusiveMinimum", 0}, {"description", "seconds for timing all workloads; correctness comes on top. Left out: as the task says"}};
  members["samples"] = {{"type", "integer"}, {"minimum", 1}, {"maximum", 1000000}, {"description", "exactly this many timed pairs a workload"}};
  return input_schema(std::move(members), {"candidate"});
}

// One judgement. The verb asks the run's launcher when one works, and else measures and records itself.
Result<json> bench_verb(const Workplace& place, const json& arguments, const Call& call) {
  std::vector<std::string> line = place.line("bench", arguments);
  if (const auto budget = arguments.find("budget_s"); budget != arguments.end())
    line.insert(line.end(), {"--budget", fmt::format("time={:.3f}", budget->get<double>())});
  if (const auto samples = arguments.find("samples"); samples != arguments.end()) line.insert(line.end(), {"--samples", samples->dump()});
  add_subject(line, arguments);
  return run_verb(place.command, std::move(line), call);
}

Result<Answer> bench(const Workplace& place, const Call& call) {
  HONE_TRY(const json whole, bench_verb(place, call.arguments, call));
  Answer answer;
  answer.facts = picked(whole, {"candidate", "task", "device", "passed", "total", "geomean", "geomean_ci", "incumbent_geomean", "incumbent_geomean_ci", "decision",
                                "receipt", "notes", "said"});
  answer.facts["workloads"] = json::array();
  for (const json& each : whole.value("workloads", json::array())) {
    json row = picked(each, {"id", "verdict", "error", "ratio", "ratio_ci", "baseline_us", "candidate_us", "samples", "notes"});
    if (row.contains("notes") && row["notes"].empty()) row.erase("notes");
    answer.facts["workloads"].push_back(std::move(row));
  }
  place.keep(answer.facts, "bench", whole);
  HONE_TRY(const Report report, report_from_json(whole));
  answer.text = to_text(report);
  for (const json& line : whole.value("said", json::array())) answer.text += line.get<std::string>() + "\n";
  return answer;
}

// Judgements that go on between calls. They end with the server. Measurements called directly go through here too, so that
// there is one at a time.
class Jobs {
 public:
  explicit Jobs(Place place) : place_(std::move(place)) {}
  ~Jobs() {
    stop();
    if (worker_.joinable()) worker_.join();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (auto& [id, job] : jobs_) job->cancel.store(true);
    }
    changed_.notify_all();
  }

  Result<Answer> alone(const Call& call) {
    std::unique_lock lock(device_, std::defer_lock);
    for (bool said = false; !lock.try_lock_for(as_duration(0.1)); said = true) {
      if (call.cancel.load()) return fail(ErrorKind::cancelled, "cancelled while another measurement ran");
      if (!said) call.progress("waiting for another measurement of this server");
    }
    return bench(*place_, call);
  }

  Result<std::string> submit(json arguments) {
    const std::lock_guard lock(mutex_);
    std::size_t open = 0;
    for (const auto& [id, job] : jobs_) open += job->state == "done" ? 0 : 1;
    if (open >= 32) return fail(make_error(ErrorKind::unavailable, "32 jobs wait already").with_hint("poll one until it is done, or cancel one"));
    for (auto each = jobs_.begin(); jobs_.size() >= kJobs && each != jobs_.end();) each = each->second->state == "done" ? jobs_.erase(each) : std::next(each);
    const std::string id = fmt::format("bench-{}", ++last_);
    auto job = std::make_shared<Job>();
    job->arguments = std::move(arguments);
    job->submitted_s = now_s();
    jobs_[id] = job;
    waiting_.push_back(std::move(job));
    if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
    changed_.notify_all();
    return id;
  }

  Result<Answer> poll(const std::string& id, double wait_s, bool cancel, const Call& call) {
    std::unique_lock lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end())
      return fail(make_error(ErrorKind::not_found, "no job {} is here", id)
                      .with_hint("jobs end with the server that took them: the ledger shows whether a result was recorded; else submit again"));
    const std::shared_ptr<Job> job = found->second;
    if (cancel) job->cancel.store(true);
    const double end = now_s() + std::min(wait_s, kLongestWait_s);
    std::string told;
    while (job->state != "done" && now_s() < end && !call.cancel.load() && !stopping_) {
      changed_.wait_for(lock, as_duration(0.2));
      if (job->line != told) {
        told = job->line;
        call.progress(told);
      }
    }
    if (job->state != "done") {
      Answer answer;
      answer.text = fmt::format("{} is {} for {}{}\npoll again\n", id, job->state, format_duration(now_s() - job->submitted_s), job->line.empty() ? "" : ": " + job->line);
      answer.facts = {{"job", id}, {"state", job->state}, {"progress", job->line}};
      return answer;
    }
    if (!job->outcome) return fail(job->outcome.error());
    Answer answer = *job->outcome;
    answer.facts["job"] = id;
    answer.facts["state"] = "done";
    return answer;
  }

 private:
  struct Job {
    json arguments;
    std::string state = "queued", line;          // queued running done
    double submitted_s = 0;
    std::atomic<bool> cancel{false};
    Result<Answer> outcome = Answer{};
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      const std::shared_ptr<Job> job = waiting_.front();
      waiting_.erase(waiting_.begin());
      job->state = "running";
      lock.unlock();
      const std::function<void(const std::string&)> progress = [&](const std::string& line) {
        const std::lock_guard guard(mutex_);
        job->line = line;
      };
      Result<Answer> outcome = fail(ErrorKind::cancelled, "cancelled before it began");
      if (!job->cancel.load()) outcome = alone({job->arguments, progress, job->cancel});
      lock.lock();
      job->outcome = std::move(outcome);
      job->state = "done";
      changed_.notify_all();
    }
  }

  const Place place_;
  std::timed_mutex device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  std::vector<std::shared_ptr<Job>> waiting_;
  int last_ = 0;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace

std::vector<Tool> measuring_tools(const Place& place) {
  const auto jobs = std::make_shared<Jobs>(place);
  const std::string recorded = place->run ? " The result becomes a row of the run's ledger, failed ones too." : "";
  json polled = bench_output();
  polled["properties"]["job"] = {{"type", "string"}};
  polled["properties"]["state"] = {{"type", "string"}, {"description", "queued, running or done; the result's members are there when it is done"}};
  polled["properties"]["progress"] = {{"type", "string"}};
  return {
      {"bench", "Judge a candidate",
       "Compiles the candidate, checks its outputs on every workload with secret inputs, times it against the baseline and says PASS or what is wrong, the "
       "speedup with its 95% interval, and the decision. Takes from seconds to minutes; reports progress. Measurements run one after the other." + recorded,
       bench_input(*place), bench_output(), true, place->run.has_value(), [jobs](const Call& call) { return jobs->alone(call); }},
      {"bench_submit", "Begin to judge a candidate",
       "As `bench`, but answers at once with a job for `bench_poll`: for clients that end a tool call after a fixed time." + recorded, bench_input(*place),
       object_schema({{"job", {{"type", "string"}, {"description", "for bench_poll"}}}, {"state", {{"type", "string"}}}}), false, place->run.has_value(),
       [jobs](const Call& call) -> Result<Answer> {
         HONE_TRY(const std::string id, jobs->submit(call.arguments));
         return Answer{fmt::format("{} is queued: ask bench_poll for it\n", id), {{"job", id}, {"state", "queued"}}};
       },
       [jobs] { jobs->stop(); }},
      {"bench_poll", "See how a submitted judgement stands",
       "Waits up to `wait_s` seconds for a job of `bench_submit`; gives its state and progress, and when it is done the same result as `bench`.",
       input_schema({{"job", {{"type", "string"}, {"description", "as bench_submit gave it"}}},
                     {"wait_s", {{"type", "number"}, {"minimum", 0}, {"maximum", kLongestWait_s}, {"description", "default 20"}}},
                     {"cancel", {{"type", "boolean"}, {"description", "true: give the job up"}}}},
                    {"job"}),
       std::move(polled), false, false,
       [jobs](const Call& call) {
         return jobs->poll(call.arguments.at("job").get<std::string>(), call.arguments.value("wait_s", 20.0), call.arguments.value("cancel", false), call);
       }},
  };
}

}  // namespace hone::mcp
