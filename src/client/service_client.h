// An evaluation service as its clients use it. A request that a broken connection, a full queue (503) or a quota (429)
// stops is tried again, for a bounded and visible time; jobs carry a key, so that none is accepted twice.
#ifndef HONE_CLIENT_SERVICE_CLIENT_H
#define HONE_CLIENT_SERVICE_CLIENT_H

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "client/http_client.h"
#include "judge/judge.h"

namespace hone::client {

struct ClientOptions {
  std::string url, token;                  // token empty: none
  double patience_s = 120;                 // of trying again
  Progress progress;                       // lines that say what is waited for; may be empty
  const std::atomic<bool>* cancel = nullptr;
};

class ServiceClient {
 public:
  // Kind usage for a URL that is none. Nothing is sent yet.
  static Result<ServiceClient> create(ClientOptions options);
  const std::string& url() const { return url_; }

  // Errors below: the service's own with its kind, or unavailable when it cannot be reached in time.
  struct Health {
    bool ok = false;
    nlohmann::json body;
  };
  Result<Health> health();                 // once, without patience
  Result<nlohmann::json> task(const std::string& name);
  // Accepts a job ({"kind", "request", ...}); its state then. Large files of candidates go ahead as blobs.
  Result<nlohmann::json> submit(nlohmann::json job);
  // When it has ended or there are events after `after`, at the latest after `wait_s`.
  Result<nlohmann::json> job(const std::string& id, double wait_s = 0, std::optional<std::int64_t> after = {});
  Result<nlohmann::json> jobs(int limit);
  Result<nlohmann::json> cancel(const std::string& id);
  // Follows a job to its end, with its progress. A wish to cancel is passed on, the client's or `cancel`'s; what had finished
  // is in the answer.
  Result<nlohmann::json> follow(const std::string& id, const std::atomic<bool>* cancel = nullptr);

 private:
  ServiceClient(HttpClient http, std::string url, ClientOptions options)
      : http_(std::move(http)), url_(std::move(url)), options_(std::move(options)) {}
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->load(); }
  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }
  struct Sent {
    std::string type, bytes;               // Content-Type; none: no body
    std::string key;                       // of idempotency; empty: none
  };
  Result<nlohmann::json> call(const std::string& method, const std::string& target, double timeout_s, const Sent& sent = {});

  HttpClient http_;
  std::string url_;
  ClientOptions options_;
};

// A job's result when it ends, with its `report` where there is one; else the job's error.
Result<nlohmann::json> ask(ServiceClient& service, const std::string& kind, nlohmann::json request, const std::atomic<bool>* cancel = nullptr);
// judge() on the service: the same report, receipt included, for the same request.
Result<Report> judge_remotely(ServiceClient& service, const Task& task, const JudgeRequest& request);

}  // namespace hone::client

#endif
