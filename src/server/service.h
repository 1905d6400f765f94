// The evaluation service without its network: takes jobs, queues them, gives them to device processes one at a time,
// keeps the answers. Every method may be called by any thread; each error's kind says which HTTP status it is.
#ifndef HONE_SERVER_SERVICE_H
#define HONE_SERVER_SERVICE_H

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <thread>

#include "server/blobs.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/queue.h"
#include "server/store.h"
#include "server/tokens.h"

namespace hone::server {

struct ServiceOptions {
  fs::path data;                           // database, blobs, audit log
  fs::path tokens;                         // file of tokens
  std::vector<std::vector<std::string>> devices;   // argv of each device's process
  std::size_t compilers = 0;               // processes that compile beside the devices; none: under the lease
  std::string version;
  bool exec = false;
  bool guarded = false;                    // it can be reached from elsewhere: nobody gets in without a token
  QueueLimits queue;
  std::size_t keep_jobs = 10000;           // ended ones
  std::uint64_t blob_bytes = std::uint64_t{10} << 30;
  double start_s = 60;                     // for a device process to be ready
  double watchdog_s = 5;                   // without a sign of life: not healthy
  double replace_s = 30;                   // without a sign of life: killed and replaced
  double probe_s = 10;                     // between probes of an idle device
};

// Who asks. No token: a service that has never had tokens, and listens on loopback only.
struct Caller {
  std::optional<Token> token;
  std::string peer, request_id;

  std::string id() const { return token ? token->id : "local"; }
  bool may(Scope scope) const { return token ? allows(*token, scope) : scope != Scope::admin; }
  // Whose jobs it sees; none: everybody's.
  std::optional<std::string> owner() const {
    return token && allows(*token, Scope::admin) ? std::nullopt : std::optional<std::string>(id());
  }
};

struct Health {
  bool ok = false;
  nlohmann::json body;                     // schema hone.health/1
};

class Service {
 public:
  // Opens the state and starts every device; jobs of before are queued again. The first device's own error when it
  // cannot start (sandbox_unavailable, no_compiler, ...).
  static Result<std::unique_ptr<Service>> open(ServiceOptions options, Log& log);
  ~Service();                              // without waiting: what runs is queued again at the next start

  // Called, by any thread, when something about a job has changed. Set before the first request.
  void on_change(std::function<void(const std::string& job)> changed) { changed_ = std::move(changed); }

  // Kind unauthorized when the secret is unknown or missing where there are tokens; quota (429) when it asks too often.
  Result<Caller> admit(std::optional<std::string_view> secret, const std::string& peer, const std::string& request_id);

  // Of a secret, without counting a request.
  std::optional<Token> identify(std::string_view secret) const { return tokens_->find(secret); }
  // Once it has wanted them it always will: with its last token revoked, nobody gets in.
  bool wants_tokens() const;
  const std::string& version() const { return options_.version; }

  // Whether jobs of this kind can be done here at all. Kind unavailable.
  Result<> supports(const std::string& kind) const;

  struct Submitted {
    nlohmann::json job;
    bool repeated = false;
  };
  // `body` obeys share/schema/job.json. Kinds unauthorized, contract, not_found, conflict, quota, unavailable.
  Result<Submitted> submit(const Caller& caller, const nlohmann::json& body, const std::string& key);
  // `after`: with the events that follow this one.
  Result<nlohmann::json> job(const Caller& caller, const std::string& id, std::optional<std::int64_t> after);
  Result<nlohmann::json> jobs(const Caller& caller, std::size_t limit, std::optional<std::int64_t> before);
  Result<std::vector<Event>> events(const Caller& caller, const std::string& id, std::int64_t after);
  // Whether nothing more will happen to it.
  Result<bool> ended(const std::string& id) const;
  Result<nlohmann::json> cancel(const Caller& caller, const std::string& id);
  // "receipt.json", "trace.json" (Chrome's trace format), "result.json". Kind not_found.
  Result<std::string> artifact(const Caller& caller, const std::string& id, const std::string& name);

  Result<Blobs::Upload> begin_blob(const Caller& caller, const std::string& sha256, std::uint64_t bytes);
  Result<> own_blob(const Caller& caller, const std::string& sha256, std::uint64_t bytes);
  Result<std::string> blob(const Caller& caller, const std::string& sha256);
  bool has_blob(const Caller& caller, const std::string& sha256);

  Health health() const;
  Metrics& metrics() { return metrics_; }
  std::string metrics_text();

  // No new jobs from now on; returns when nothing runs any more or the time is over.
  void drain(double limit_s);
  bool draining() const { return draining_; }

 private:
  struct Lane;
  struct Watched;
  explicit Service(ServiceOptions options, Log& log);
  // server/lanes.cpp: a device's thread.
  void lane(Lane& lane, std::function<void(Result<>)> started);
  void compile_lane(Lane& lane);
  void compile(Lane& lane, const Waiting& waiting);
  Result<> start_device(Lane& lane);
  void idle(Lane& lane);
  void lose(Lane& lane, const std::string& reason);
  void run(Lane& lane, const Waiting& waiting);
  bool lead(Lane& lane, const Waiting& waiting, const Job& job, nlohmann::json request);
  Watched watch(Lane& lane, const Job& job, nlohmann::json request);
  Result<> insist(const Job& job, const std::function<Result<>()>& write);
  void keep(const Job& job, std::int64_t lease, JobState state, const nlohmann::json& answer, double ran_s);
  Result<nlohmann::json> with_blobs(nlohmann::json request) const;

  Result<> has_bytes_left(const Token& token, std::uint64_t bytes) const;
  Result<> has_time_left(const Token& token) const;
  void enqueue(const Job& job);
  void collect(std::uint64_t keep_bytes);
  void janitor();
  void end_job(const Job& job, JobState state, nlohmann::json result, double waited_s);
  void changed(const std::string& job) {
    if (changed_) changed_(job);
  }
  nlohmann::json job_json(const Job& job) const;

  const ServiceOptions options_;
  Log& log_;
  Metrics metrics_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<Blobs> blobs_;
  std::function<void(const std::string&)> changed_;

  mutable std::mutex mutex_;               // queue, lanes' state, buckets
  std::condition_variable wake_;
  Queue queue_;
  std::map<std::string, Bucket> buckets_;  // by token
  struct Ending {
    Job job;
    JobState state;
    nlohmann::json result;
    double waited_s;
  };
  std::vector<Ending> unended_;            // jobs that never ran and whose end could not be written yet
  std::vector<std::unique_ptr<Lane>> lanes_, compilers_;
  std::atomic<bool> draining_{false}, stopping_{false};
  mutable std::atomic<bool> guarded_;
  const double began_s_;
  std::thread janitor_;
};

}  // namespace hone::server

#endif
