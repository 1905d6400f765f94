#include "client/service_client.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "wire/wire.h"

namespace hone::client {
namespace {

using nlohmann::json;

constexpr double kAnswer_s = 30;           // beyond what a request itself waits
constexpr double kPoll_s = 20;
constexpr double kUpload_s = 600;
constexpr std::size_t kInline = std::size_t{256} << 10;   // characters of a file that a job's body holds itself
constexpr double kLongestPause_s = 5;

// As one part of a path: everything but what RFC 3986 calls unreserved is written %XX.
std::string escaped(std::string_view text) {
  std::string out;
  for (const unsigned char c : text)
    if (std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~') out += static_cast<char>(c);
    else out += fmt::format("%{:02X}", c);
  return out;
}

json parse(const std::string& body) {
  json out = json::parse(body, nullptr, false);
  return out.is_object() ? out : json();
}

Error error_of(const HttpAnswer& answer, const std::string& url) {
  const json body = parse(answer.body);
  if (body.is_object() && body.contains("error"))
    try {
      Error error;
      from_json(body["error"], error);
      return error;
    } catch (const json::exception&) {
    }
  return make_error(ErrorKind::unavailable, "{} answered {} in words that are no hone service's", url, answer.status)
      .with_hint("is this the URL of `hone serve`?");
}

}  // namespace

Result<ServiceClient> ServiceClient::create(ClientOptions options) {
  HONE_TRY(const Url url, parse_url(options.url));
  if (std::any_of(options.token.begin(), options.token.end(), [](unsigned char c) { return c <= ' ' || c > '~'; }))
    return fail(make_error(ErrorKind::usage, "the token holds a blank, a line end or another character that no token has").with_hint("look at HONE_TOKEN"));
  std::string text = to_text(url);
  return ServiceClient(HttpClient(url), std::move(text), std::move(options));
}

Result<json> ServiceClient::call(const std::string& method, const std::string& target, double timeout_s, const Sent& sent) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!options_.token.empty()) headers.emplace_back("Authorization", "Bearer " + options_.token);
  if (!sent.type.empty()) headers.emplace_back("Content-Type", sent.type);
  if (!sent.key.empty()) headers.emplace_back("Idempotency-Key", sent.key);
  const double end = now_s() + options_.patience_s;
  for (double pause_s = 0.1;; pause_s = std::min(2 * pause_s, kLongestPause_s)) {
    const auto answer = http_.send(method, target, sent.bytes, headers, timeout_s);
    Error error;
    if (answer) {
      if (answer->status >= 200 && answer->status < 300) {
        json out = parse(answer->body);
        if (out.is_null()) return fail(error_of(*answer, url_));
        return out;
      }
      error = error_of(*answer, url_);
      // What this service will never do is not waited for.
      const auto after = answer->headers.find("retry-after");
      if ((answer->status != 503 && answer->status != 429) || after == answer->headers.end()) return fail(std::move(error));
      pause_s = std::max(pause_s, std::min(std::atof(after->second.c_str()), kLongestPause_s));
    } else {
      error = answer.error();
      if (error.kind != ErrorKind::unavailable) return fail(std::move(error));
    }
    if (cancelled()) return fail(ErrorKind::cancelled, "stopped while {} was waited for", url_);
    if (now_s() + pause_s > end) return fail(std::move(error));
    say(fmt::format("service: waiting, at most {:.0f} s more: {}", end - now_s(), error.message));
    for (const double until = now_s() + pause_s; now_s() < until && !cancelled();) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Result<ServiceClient::Health> ServiceClient::health() {
  HONE_TRY(const HttpAnswer answer, http_.send("GET", "/health", "", {}, kAnswer_s));
  Health out{answer.status == 200, parse(answer.body)};
  if (!out.body.is_object() || out.body.value("schema", "") != "hone.health/1") return fail(error_of(answer, url_));
  return out;
}

Result<json> ServiceClient::task(const std::string& name) { return call("GET", "/v1/tasks/" + escaped(name), kAnswer_s); }

Result<json> ServiceClient::submit(json job) {
  for (const char* side : {"candidate", "incumbent"}) {
    if (!job["request"].contains(side)) continue;
    for (auto& [name, content] : job["request"][side]["files"].items()) {
      const bool hex = content.is_object() && content.contains("hex");
      if (!hex && !content.is_string()) continue;
      const std::string& text = (hex ? content["hex"] : content).get_ref<const std::string&>();
      if (text.size() <= kInline) continue;
      auto bytes = hex ? from_hex(text) : std::optional(text);
      if (!bytes) continue;                // the service says what is wrong with it
      const std::string hash = sha256(*bytes);
      HONE_CHECK(call("PUT", "/v1/blobs/" + hash, kUpload_s, {"application/octet-stream", *std::move(bytes), ""}));
      content = {{"sha256", hash}};
    }
  }
  return call("POST", "/v1/jobs", kAnswer_s, {"application/json", job.dump(), fmt::format("c-{:016x}{:016x}", random_seed(), random_seed())});
}

Result<json> ServiceClient::job(const std::string& id, double wait_s, std::optional<std::int64_t> after) {
  return call("GET", fmt::format("/v1/jobs/{}?wait={:.3f}{}", escaped(id), wait_s, after ? fmt::format("&after={}", *after) : ""), wait_s + kAnswer_s);
}

Result<json> ServiceClient::jobs(int limit) { return call("GET", fmt::format("/v1/jobs?limit={}", limit), kAnswer_s); }

Result<json> ServiceClient::cancel(const std::string& id) { return call("POST", "/v1/jobs/" + escaped(id) + "/cancel", kAnswer_s); }

Result<json> ServiceClient::follow(const std::string& id, const std::atomic<bool>* cancel) {
  std::int64_t seen = 0;
  bool asked = false;
  for (;;) {
    if (!asked && (cancelled() || (cancel != nullptr && cancel->load()))) {
      asked = true;
      // Not `call`, which does not try again for a client that is being stopped.
      HONE_CHECK(this->cancel(id));
    }
    const double poll_s = options_.cancel != nullptr || cancel != nullptr ? 1 : kPoll_s;
    HONE_TRY(json job, this->job(id, poll_s, seen));
    for (const json& event : job["events"]) {
      seen = std::max(seen, event.value("n", seen));
      const std::string line = event["data"].is_object() ? event["data"].value("progress", "") : "";
      if (!line.empty()) say(line);
      else if (event.value("name", "") == "leased") say(fmt::format("service: job {} runs", id));
    }
    const std::string state = job.value("state", "");
    if (state == "done" || state == "cancelled") return job;
    if (state == "queued" && job["ahead"].is_number()) say(fmt::format("service: job {} waits, {} before it", id, job["ahead"].get<std::int64_t>()));
  }
}

Result<json> ask(ServiceClient& service, const std::string& kind, json request, const std::atomic<bool>* cancel) {
  HONE_TRY(const json accepted, service.submit({{"kind", kind}, {"request", std::move(request)}}));
  HONE_TRY(json job, service.follow(accepted.at("id").get<std::string>(), cancel));
  json& result = job.at("result");
  if (!result.is_object()) return fail(ErrorKind::internal, "job {} ended without a result", job.at("id").get<std::string>());
  if (!result.contains("error") || result.contains("report")) return std::move(result);
  Error error;
  from_json(result["error"], error);
  if (const auto partial = result.find("partial"); partial != result.end())
    for (const json& each : partial->value("workloads", json::array()))
      error.notes.push_back(fmt::format("before that: workload {}: {}{}", each.value("id", ""), each.value("verdict", ""),
                                        each["ratio"].is_number() ? fmt::format(" {:.3f}x", each["ratio"].get<double>()) : ""));
  return fail(std::move(error));
}

Result<Report> judge_remotely(ServiceClient& service, const Task& task, const JudgeRequest& request) {
  HONE_TRY(const json result, ask(service, "bench", wire::bench_request(task, request), request.cancel));
  if (!result.contains("report")) return fail(ErrorKind::internal, "the service ended the job without a report");
  HONE_TRY(Report report, report_from_json(result["report"]));
  report.receipt_body = result.value("receipt", json());
  return report;
}

}  // namespace hone::client
