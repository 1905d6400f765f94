// What the service must not lose: jobs, their events and results, in one SQLite database
// (WAL, synchronous=FULL).
//
// Every change goes through one thread, which puts all changes that wait into one transaction: a call
// returns when its change is on disk, and a hundred callers share one sync. A change that fails is
// undone alone.
//
// A job's life: queued, running under a lease, then one terminal state for ever. Leases are counted; a
// result is taken only from the lease that is current, so that a late finisher changes nothing.
#ifndef HONE_SERVER_STORE_H
#define HONE_SERVER_STORE_H

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone::server {

enum class JobState { queued, running, done, cancelled };
std::string_view name_of(JobState state);

struct JobRequest {
  std::string token;                       // id of the token that submits it
  std::string kind;                        // bench, check, compile, inspect, exec
  std::string key;                         // idempotency key, unique for the token; empty: none
  int priority = 0;
  double timeout_s = 0;                    // of running; 0: the kind's own
  std::optional<double> queue_timeout_s;   // of waiting
  nlohmann::json body;                     // what the kind takes
  std::vector<std::string> blobs;          // sha256 of what it needs; kept while it lives
  std::string request_id;                  // of the HTTP request that brought it; stands in its first event
};

struct Job {
  std::int64_t number = 0;                 // in order of acceptance
  std::string id;
  JobRequest request;
  JobState state = JobState::queued;
  std::int64_t lease = 0;                  // how often it was started
  bool cancel_asked = false;
  std::string accepted, started, ended;    // UTC; empty: not yet
  double queued_s = 0, ran_s = 0;          // kept apart
  nlohmann::json result;                   // null until terminal; then what the kind gives, or {"error": ...}
};

// Of a job, numbered from 1: queued, compiling, leased, measuring, ... (data says more).
struct Event {
  std::int64_t n = 0;
  std::string time, name;
  nlohmann::json data;
};

struct Accepted {
  Job job;
  bool repeated = false;                   // the key was known: it is the job of the first time
};

class Store {
 public:
  // Creates or opens; jobs that were running are queued again. Kind io when the folder cannot be written,
  // `contract` when the database is of a later version or damaged.
  static Result<std::unique_ptr<Store>> open(const fs::path& database);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Kind conflict when the key was used for another request. `may` is asked for a new job only: its error is the answer.
  Result<Accepted> accept(const JobRequest& request, const std::function<Result<>()>& may = {});
  // A queued job runs from now on, after `waited_s` more in the queue: its new lease. Kind conflict when it is not queued.
  Result<std::int64_t> start(const std::string& job, double waited_s);
  // Back to the queue: its device was lost. Kind conflict as for `finish`.
  Result<> requeue(const std::string& job, std::int64_t lease);
  // The result of a lease. Kind conflict when the job has ended or another lease is current.
  Result<> finish(const std::string& job, std::int64_t lease, JobState state, const nlohmann::json& result, double ran_s);
  // A queued job ends without having run, after `waited_s` more in the queue. Kind conflict when it is not queued.
  Result<> end_unstarted(const std::string& job, JobState state, const nlohmann::json& result, double waited_s);
  // Notes the wish; ending is up to whoever runs it. False: it has ended already.
  Result<bool> ask_cancel(const std::string& job);
  Result<> add_event(const std::string& job, const std::string& name, const nlohmann::json& data);

  // Kind not_found. `token`: only if it is this token's (an administrator passes none).
  Result<Job> job(const std::string& id, const std::optional<std::string>& token = {}) const;
  // Latest first; `before`: only numbers below it.
  Result<std::vector<Job>> jobs(const std::optional<std::string>& token, std::size_t limit,
                                std::optional<std::int64_t> before = {}) const;
  // In order of acceptance: what a server that starts must put into its queue.
  Result<std::vector<Job>> queued() const;
  Result<std::vector<Event>> events(const std::string& job, std::int64_t after = 0) const;

  // Seconds that a token's jobs have run since a moment (UTC).
  Result<double> ran_s(const std::string& token, const std::string& since) const;

  // A blob is on disk (server/blobs.h) and this token may read it.
  Result<> own_blob(const std::string& sha256, std::uint64_t bytes, const std::string& token);
  Result<bool> may_read_blob(const std::string& sha256, const std::string& token) const;
  Result<std::uint64_t> blob_bytes(const std::optional<std::string>& token = {}) const;
  // Of the bodies of a token's jobs that have not ended.
  Result<std::uint64_t> body_bytes(const std::string& token) const;
  // Forgets blobs that no living job names, oldest use first, until `keep_bytes` are left; the files of those
  // returned may be removed.
  Result<std::vector<std::string>> collect_blobs(std::uint64_t keep_bytes);
  // Ended jobs beyond each token's latest `keep`, with their events.
  Result<std::size_t> drop_old_jobs(std::size_t keep);

  // "ok", or what SQLite found.
  Result<std::string> check() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone::server

#endif
