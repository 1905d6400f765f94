#include "server/service.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <future>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "server/lane.h"
#include "wire/wire.h"

namespace hone::server {
namespace {

using nlohmann::json;

constexpr double kJanitor_s = 1, kCollect_s = 30;
constexpr std::uint64_t kLeastFree = std::uint64_t{16} << 20;

std::string today() { return utc_timestamp().substr(0, 10) + "T00:00:00.000Z"; }

// "2026-12-02T01:02:03.456Z" as microseconds since 1970, for Chrome's traces.
double microseconds(const std::string& utc) {
  std::tm parts = {};
  if (utc.size() < 23 || ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return static_cast<double>(::timegm(&parts)) * 1e6 + std::strtod(utc.substr(20, 3).c_str(), nullptr) * 1e3;
}

// 0: it cannot be seen.
std::uint64_t free_bytes(const fs::path& folder) {
  struct statvfs disk = {};
  return ::statvfs(folder.c_str(), &disk) == 0 ? std::uint64_t{disk.f_bavail} * disk.f_frsize : 0;
}

}  // namespace

Service::Service(ServiceOptions options, Log& log)
    : options_(std::move(options)), log_(log), queue_(options_.queue), guarded_(options_.guarded), began_s_(now_s()) {
  metrics_.describe("hone_build_info", "gauge", "the running version");
  metrics_.describe("hone_jobs_total", "counter", "jobs that have ended, by kind and how");
  metrics_.describe("hone_jobs_accepted_total", "counter", "jobs accepted, by kind");
  metrics_.describe("hone_job_queue_seconds", "histogram", "time from acceptance to a device");
  metrics_.describe("hone_job_run_seconds", "histogram", "time on a device");
  metrics_.describe("hone_queue_jobs", "gauge", "jobs that wait");
  metrics_.describe("hone_devices", "gauge", "devices by state");
  metrics_.describe("hone_worker_replaced_total", "counter", "device processes that were lost and replaced");
  metrics_.describe("hone_http_requests_total", "counter", "answers, by route and status");
  metrics_.describe("hone_http_request_seconds", "histogram", "time to answer, by route");
  metrics_.describe("hone_http_connections", "gauge", "open connections");
  metrics_.describe("hone_blob_bytes", "gauge", "bytes of blobs");
  metrics_.describe("process_resident_memory_bytes", "gauge", "of the front process");
  metrics_.describe("process_open_fds", "gauge", "of the front process");
  metrics_.describe("process_uptime_seconds", "gauge", "of the front process");
  metrics_.set("hone_build_info", {{"version", options_.version}}, 1);
  metrics_.add("hone_worker_replaced_total", {}, 0);
}

Result<std::unique_ptr<Service>> Service::open(ServiceOptions options, Log& log) {
  adopt_orphans();
  std::unique_ptr<Service> out(new Service(std::move(options), log));
  Service& self = *out;
  HONE_CHECK(make_dirs(self.options_.data));
  HONE_TRY(self.store_, Store::open(self.options_.data / "service.db"));
  HONE_TRY(Blobs blobs, Blobs::open(self.options_.data / "blobs"));
  self.blobs_ = std::make_unique<Blobs>(std::move(blobs));
  HONE_TRY(self.tokens_, Tokens::load(self.options_.tokens));
  HONE_TRY(const std::vector<Job> waiting, self.store_->queued());
  for (const Job& job : waiting) self.enqueue(job);
  if (!waiting.empty()) log.info("jobs_queued_again", {{"jobs", waiting.size()}});
  std::promise<Result<>> first;
  auto first_started = first.get_future();
  for (std::size_t i = 0; i < self.options_.devices.size(); ++i) {
    auto lane = std::make_unique<Lane>();
    lane->number = i;
    lane->argv = self.options_.devices[i];
    self.lanes_.push_back(std::move(lane));
  }
  for (const auto& lane : self.lanes_) {
    std::function<void(Result<>)> started = [](Result<>) {};
    if (lane->number == 0) started = [&first](Result<> result) { first.set_value(std::move(result)); };
    lane->thread = std::thread([&self, &each = *lane, started] { self.lane(each, started); });
  }
  HONE_CHECK(first_started.get());
  for (std::size_t i = 0; i < self.options_.compilers; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->role = "compiler";
    lane->number = i;
    lane->argv = self.options_.devices.front();
    lane->thread = std::thread([&self, &each = *lane] { self.compile_lane(each); });
    self.compilers_.push_back(std::move(lane));
  }
  self.janitor_ = std::thread([&self] { self.janitor(); });
  return out;
}

Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = stopping_ = true;
  }
  wake_.notify_all();
  for (const auto* lanes : {&lanes_, &compilers_})
    for (const auto& lane : *lanes)
      if (lane->thread.joinable()) lane->thread.join();
  if (janitor_.joinable()) janitor_.join();
}

void Service::drain(double limit_s) {
  draining_ = true;
  wake_.notify_all();
  for (const double end = now_s() + limit_s; now_s() < end;) {
    {
      const std::lock_guard lock(mutex_);
      const auto busy = [](const auto& each) { return !each->job.empty(); };
      if (std::none_of(lanes_.begin(), lanes_.end(), busy) && std::none_of(compilers_.begin(), compilers_.end(), busy)) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// ---- who and how much

bool Service::wants_tokens() const {
  if (tokens_->any()) guarded_ = true;
  return guarded_;
}

Result<Caller> Service::admit(std::optional<std::string_view> secret, const std::string& peer, const std::string& request_id) {
  Caller caller{std::nullopt, peer, request_id};
  if (secret) caller.token = tokens_->find(*secret);
  if ((secret || wants_tokens()) && !caller.token)
    return fail(make_error(ErrorKind::unauthorized, "{}", secret ? "the token is unknown or revoked" : "this service wants a token")
                    .with_hint("set HONE_TOKEN, or send the header `Authorization: Bearer TOKEN`; `hone token create` makes one"));
  if (caller.token && caller.token->quotas.requests_per_s > 0) {
    const double rate = caller.token->quotas.requests_per_s;
    const std::lock_guard lock(mutex_);
    Bucket& bucket = buckets_.try_emplace(caller.token->id, rate, std::max(1.0, 2 * rate)).first->second;
    if (const double wait_s = bucket.take(now_s()); wait_s > 0)
      return fail(ErrorKind::quota, "token {} may ask {} times a second; the next is free in {:.1f} s", caller.token->name, rate, wait_s);
  }
  return caller;
}

// ---- jobs

Result<> Service::supports(const std::string& kind) const {
  if (kind == "check") return fail(ErrorKind::unavailable, "this version cannot do jobs of kind {}", kind);
  if (kind == "exec" && !options_.exec)
    return fail(make_error(ErrorKind::unavailable, "this service runs no commands").with_hint("its operator can start it with --exec"));
  return {};
}

Result<Service::Submitted> Service::submit(const Caller& caller, const json& body, const std::string& key) {
  if (!caller.may(Scope::submit)) return fail(ErrorKind::unauthorized, "this token has not the scope submit");
  HONE_CHECK(wire::check_job(body));
  JobRequest request;
  request.token = caller.id();
  request.kind = body["kind"].get<std::string>();
  request.key = key;
  request.request_id = caller.request_id;
  request.priority = body.value("priority", 0);
  request.timeout_s = body.value("timeout_s", 0.0);
  if (body.contains("queue_timeout_s")) request.queue_timeout_s = body["queue_timeout_s"].get<double>();
  request.body = body["request"];
  HONE_CHECK(supports(request.kind));
  if (request.priority > 0 && caller.token && !caller.may(Scope::admin))
    return fail(make_error(ErrorKind::unauthorized, "a priority above 0 goes before other tokens' jobs: that is an administrator's").with_hint("up to 0 is anybody's"));
  if (request.kind == "exec" && !caller.may(Scope::exec)) return fail(ErrorKind::unauthorized, "this token has not the scope exec");
  for (const char* side : {"candidate", "incumbent"})
    if (const auto candidate = request.body.find(side); candidate != request.body.end())
      for (const auto& [name, content] : candidate->at("files").items())
        if (content.is_object() && content.contains("sha256")) request.blobs.push_back(content["sha256"].get<std::string>());
  // Asked for a new job only: one that is sent again is answered whatever has been used up since.
  const auto may = [&]() -> Result<> {
    if (caller.token) {
      HONE_CHECK(has_bytes_left(*caller.token, request.body.dump().size()));
      HONE_CHECK(has_time_left(*caller.token));
    }
    const std::lock_guard lock(mutex_);
    if (draining_) return fail(ErrorKind::unavailable, "the service is being stopped");
    if (caller.token && caller.token->quotas.jobs > 0) queue_.limit_running(request.token, caller.token->quotas.jobs);
    return queue_.room_for(request.token);
  };
  HONE_TRY(Accepted accepted, store_->accept(request, may));
  if (!accepted.repeated) {
    metrics_.add("hone_jobs_accepted_total", {{"kind", request.kind}});
    log_.info("job_accepted", {{"job", accepted.job.id}, {"request_id", caller.request_id}, {"token", caller.id()}, {"peer", caller.peer}});
    enqueue(accepted.job);
    wake_.notify_all();
  }
  return Submitted{job_json(accepted.job), accepted.repeated};
}

// So many bytes more, of blobs or of a job's own body.
Result<> Service::has_bytes_left(const Token& token, std::uint64_t bytes) const {
  if (token.quotas.bytes == 0) return {};
  HONE_TRY(const std::uint64_t blobs, store_->blob_bytes(token.id));
  HONE_TRY(const std::uint64_t bodies, store_->body_bytes(token.id));
  if (blobs + bodies + bytes <= token.quotas.bytes) return {};
  return fail(ErrorKind::quota, "token {} may keep {} in blobs and jobs that have not ended; it has {}, and this is {}", token.name,
              format_bytes(token.quotas.bytes), format_bytes(blobs + bodies), format_bytes(bytes));
}

Result<> Service::has_time_left(const Token& token) const {
  if (token.quotas.device_s <= 0) return {};
  HONE_TRY(const double used, store_->ran_s(token.id, today()));
  if (used < token.quotas.device_s) return {};
  return fail(ErrorKind::quota, "token {} has used its {} of device time of today (UTC)", token.name, format_duration(token.quotas.device_s));
}

void Service::enqueue(const Job& job) {
  const double now = now_s(), limit_s = job.request.queue_timeout_s.value_or(0);
  Waiting waiting{job.id, job.request.token, job.request.priority, std::nullopt, now};
  if (job.request.queue_timeout_s) waiting.expires_s = now + limit_s;
  if (options_.compilers > 0 && (job.request.kind == "compile" || job.request.kind == "inspect")) waiting.needs = Needs::compiler;
  if (options_.compilers > 0 && job.request.kind == "bench") waiting.needs = Needs::compiler_then_device;
  const std::lock_guard lock(mutex_);
  queue_.push(std::move(waiting));
}

json Service::job_json(const Job& job) const {
  json out = {{"schema", "hone.job/1"},
              {"id", job.id},
              {"kind", job.request.kind},
              {"state", name_of(job.state)},
              {"priority", job.request.priority},
              {"accepted", job.accepted},
              {"started", job.started.empty() ? json() : json(job.started)},
              {"ended", job.ended.empty() ? json() : json(job.ended)},
              {"queued_s", job.queued_s},
              {"ran_s", job.ran_s},
              {"leases", job.lease},
              {"cancel_asked", job.cancel_asked},
              {"ahead", nullptr},
              {"result", job.result}};
  if (job.state == JobState::queued) {
    const std::lock_guard lock(mutex_);
    if (const auto ahead = queue_.ahead_of(job.id)) out["ahead"] = *ahead;
  }
  return out;
}

Result<json> Service::job(const Caller& caller, const std::string& id, std::optional<std::int64_t> after) {
  HONE_TRY(const Job job, store_->job(id, caller.owner()));
  json out = job_json(job);
  if (after) {
    out["events"] = json::array();
    HONE_TRY(const std::vector<Event> events, store_->events(id, *after));
    for (const Event& each : events) out["events"].push_back({{"n", each.n}, {"time", each.time}, {"name", each.name}, {"data", each.data}});
  }
  return out;
}

Result<json> Service::jobs(const Caller& caller, std::size_t limit, std::optional<std::int64_t> before) {
  HONE_TRY(const std::vector<Job> found, store_->jobs(caller.owner(), limit, before));
  json rows = json::array();
  for (const Job& each : found) {
    json row = job_json(each);
    row.erase("result");
    row.erase("schema");
    row["number"] = each.number;
    row["error"] = each.result.is_object() && each.result.contains("error") ? each.result["error"] : json();
    rows.push_back(std::move(row));
  }
  return json{{"schema", "hone.jobs/1"}, {"jobs", std::move(rows)}};
}

Result<std::vector<Event>> Service::events(const Caller& caller, const std::string& id, std::int64_t after) {
  HONE_TRY(const Job job, store_->job(id, caller.owner()));
  return store_->events(job.id, after);
}

Result<bool> Service::ended(const std::string& id) const {
  HONE_TRY(const Job job, store_->job(id));
  return job.state == JobState::done || job.state == JobState::cancelled;
}

Result<json> Service::cancel(const Caller& caller, const std::string& id) {
  if (!caller.may(Scope::submit)) return fail(ErrorKind::unauthorized, "this token has not the scope submit");
  HONE_TRY(const Job job, store_->job(id, caller.owner()));
  HONE_TRY(const bool alive, store_->ask_cancel(id));
  if (alive) {
    std::optional<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting = queue_.remove(id);
    }
    if (waiting)
      end_job(job, JobState::cancelled, {{"error", json(make_error(ErrorKind::cancelled, "cancelled before it had begun"))}}, now_s() - waiting->since_s);
    wake_.notify_all();
  }
  return this->job(caller, id, std::nullopt);
}

Result<std::string> Service::artifact(const Caller& caller, const std::string& id, const std::string& name) {
  HONE_TRY(const Job job, store_->job(id, caller.owner()));
  if (name == "result.json" && !job.result.is_null()) return job.result.dump();
  if (name == "receipt.json" && job.result.is_object() && job.result.contains("receipt")) return job.result["receipt"].dump();
  if (name == "trace.json") {
    HONE_TRY(const std::vector<Event> events, store_->events(id));
    json rows = json::array();
    for (std::size_t i = 0; i < events.size(); ++i) {
      const double begin = microseconds(events[i].time), end = i + 1 < events.size() ? microseconds(events[i + 1].time) : begin;
      rows.push_back({{"name", events[i].name}, {"cat", job.request.kind}, {"ph", "X"}, {"ts", begin}, {"dur", end - begin}, {"pid", 1}, {"tid", 1},
                      {"args", events[i].data}});
    }
    return json{{"traceEvents", std::move(rows)}, {"displayTimeUnit", "ms"}, {"otherData", {{"job", id}}}}.dump();
  }
  return fail(make_error(ErrorKind::not_found, "job {} has no artifact {}", id, name)
                  .with_hint("result.json and receipt.json are there when it has ended, trace.json always"));
}

void Service::end_job(const Job& job, JobState state, json result, double waited_s) {
  std::string how = state == JobState::cancelled ? "cancelled" : "done";
  if (state == JobState::done && result.contains("error")) how = result["error"].value("kind", "error");
  const auto ended = store_->end_unstarted(job.id, state, result, waited_s);
  if (!ended) {
    log_.warn("job_not_ended", {{"job", job.id}, {"error", json(ended.error())}});
    if (ended.error().kind == ErrorKind::io) {   // the disk is full, say: the janitor tries again
      const std::lock_guard lock(mutex_);
      unended_.push_back({job, state, std::move(result), waited_s});
    }
    return;
  }
  metrics_.add("hone_jobs_total", {{"kind", job.request.kind}, {"outcome", how}});
  log_.info("job_ended", {{"job", job.id}, {"outcome", how}});
  changed(job.id);
}

void Service::janitor() {
  for (double collected_s = 0; !stopping_;) {
    for (const double end = now_s() + kJanitor_s; now_s() < end && !stopping_;) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (const auto read = tokens_->refresh(); !read) log_.warn("tokens_not_read", {{"error", json(read.error())}});
    std::vector<Waiting> expired;
    std::vector<Ending> unended;
    {
      const std::lock_guard lock(mutex_);
      expired = queue_.take_expired(now_s());
      unended.swap(unended_);
    }
    for (Ending& each : unended) end_job(each.job, each.state, std::move(each.result), each.waited_s);
    for (const Waiting& each : expired)
      if (const auto job = store_->job(each.job))
        end_job(*job, JobState::done,
                {{"error", json(make_error(ErrorKind::queue_timeout, "it waited longer than its {}", format_duration(job->request.queue_timeout_s.value_or(0))))}}, now_s() - each.since_s);
    if (now_s() - collected_s < kCollect_s) continue;
    collected_s = now_s();
    (void)store_->drop_old_jobs(options_.keep_jobs);
    collect(options_.blob_bytes);
  }
}

// ---- blobs

void Service::collect(std::uint64_t keep_bytes) {
  if (const auto gone = store_->collect_blobs(keep_bytes))
    for (const std::string& each : *gone) (void)blobs_->remove(each);
}

Result<Blobs::Upload> Service::begin_blob(const Caller& caller, const std::string& sha256, std::uint64_t bytes) {
  if (!caller.may(Scope::submit)) return fail(ErrorKind::unauthorized, "this token has not the scope submit");
  if (has_blob(caller, sha256)) return blobs_->begin(sha256);   // sent again: it takes no room
  if (caller.token) HONE_CHECK(has_bytes_left(*caller.token, bytes));
  HONE_TRY(std::uint64_t held, store_->blob_bytes());
  if (held + bytes > options_.blob_bytes) {
    collect(options_.blob_bytes > bytes ? options_.blob_bytes - bytes : 0);
    HONE_TRY(held, store_->blob_bytes());
  }
  if (held + bytes > options_.blob_bytes)
    return fail(ErrorKind::unavailable, "no room for a blob of {}: {} of {} are needed by jobs", format_bytes(bytes), format_bytes(held), format_bytes(options_.blob_bytes));
  if (free_bytes(options_.data) < kLeastFree + bytes)
    return fail(ErrorKind::unavailable, "the disk of {} has no room for a blob of {}", options_.data.string(), format_bytes(bytes));
  return blobs_->begin(sha256);
}

Result<> Service::own_blob(const Caller& caller, const std::string& sha256, std::uint64_t bytes) {
  return store_->own_blob(sha256, bytes, caller.id());
}

bool Service::has_blob(const Caller& caller, const std::string& sha256) {
  const auto readable = store_->may_read_blob(sha256, caller.id());
  return readable && *readable && blobs_->holds(sha256);
}

Result<std::string> Service::blob(const Caller& caller, const std::string& sha256) {
  HONE_TRY(const bool readable, store_->may_read_blob(sha256, caller.id()));
  if (!readable) return fail(ErrorKind::not_found, "there is no blob {}", sha256);
  return blobs_->get(sha256);
}

// ---- state

Health Service::health() const {
  Health out;
  json devices = json::array(), compilers = json::array(), reasons = json::array();
  const auto pid = [](const Lane& lane) { return lane.pid > 0 ? json(lane.pid) : json(); };
  const auto because = [&](const char* code, const std::string& message) { reasons.push_back({{"code", code}, {"message", message}}); };
  const double now = now_s();
  bool any = false;
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = queue_.waiting();
    for (const auto& lane : lanes_) {
      const bool fine = lane->state == "ready" || lane->state == "busy";
      any = any || fine;
      if (!fine) because(("device_" + lane->state).c_str(), fmt::format("device {}: {}", lane->number, lane->reason.empty() ? lane->state : lane->reason));
      devices.push_back({{"number", lane->number}, {"state", lane->state}, {"reason", lane->reason.empty() ? json() : json(lane->reason)},
                         {"device", lane->device}, {"job", lane->job.empty() ? json() : json(lane->job)}, {"state_s", now - lane->since_s},
                         {"sign_of_life_s", now - lane->life_s}, {"probe_s", now - lane->probed_s}, {"replaced", lane->replaced},
                         {"pid", pid(*lane)}});
    }
    for (const auto& lane : compilers_)
      compilers.push_back({{"number", lane->number}, {"state", lane->state}, {"job", lane->job.empty() ? json() : json(lane->job)}, {"pid", pid(*lane)}});
  }
  if (draining_) because("draining", "the service is being stopped");
  const bool full = free_bytes(options_.data) < kLeastFree;
  if (full) because("disk_full", fmt::format("{} has too little room", options_.data.string()));
  out.ok = any && !draining_ && !full;
  out.body = {{"schema", "hone.health/1"}, {"ok", out.ok}, {"reasons", std::move(reasons)}, {"version", options_.version},
              {"uptime_s", now - began_s_}, {"devices", std::move(devices)}, {"compilers", std::move(compilers)}, {"queue", {{"waiting", waiting}}}, {"exec", options_.exec},
              {"tokens", wants_tokens()}};
  return out;
}

std::string Service::metrics_text() {
  std::map<std::string, double> states;
  {
    const std::lock_guard lock(mutex_);
    metrics_.set("hone_queue_jobs", {}, static_cast<double>(queue_.waiting()));
    for (const char* each : {"starting", "ready", "busy", "stuck", "replacing", "quarantined"}) states[each] = 0;
    for (const auto& lane : lanes_) ++states[lane->state];
  }
  for (const auto& [state, count] : states) metrics_.set("hone_devices", {{"state", state}}, count);
  if (const auto bytes = store_->blob_bytes()) metrics_.set("hone_blob_bytes", {}, static_cast<double>(*bytes));
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  metrics_.set("process_resident_memory_bytes", {}, pages * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  std::error_code code;
  metrics_.set("process_open_fds", {}, static_cast<double>(std::distance(fs::directory_iterator("/proc/self/fd", code), fs::directory_iterator())));
  metrics_.set("process_uptime_seconds", {}, now_s() - began_s_);
  return metrics_.text();
}

}  // namespace hone::server
