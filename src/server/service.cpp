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
#include "server/device_process.h"
#include "wire/wire.h"

namespace hone::server {
namespace {

using nlohmann::json;

constexpr double kDefaultTimeout_s = 3600;
constexpr double kTick_s = 0.5;
constexpr double kPing_s = 1;
constexpr double kEventEvery_s = 0.25;     // progress of one kind
constexpr double kCancelGrace_s = 10;      // from the wish to the kill
constexpr int kMostLosses = 3;             // device processes that one job may cost
constexpr int kQuarantineAfter = 5;        // processes lost in a row
constexpr double kQuarantine_s = 30;       // between tries then
constexpr double kJanitor_s = 1, kCollect_s = 30;
constexpr std::uint64_t kLeastFree = std::uint64_t{16} << 20;

json error_json(const Error& error) {
  json out;
  to_json(out, error);
  return out;
}

std::string today() { return utc_timestamp().substr(0, 10) + "T00:00:00.000Z"; }

// "2026-12-02T01:02:03.456Z" as microseconds since 1970, for Chrome's traces.
double microseconds(const std::string& utc) {
  std::tm parts = {};
  if (utc.size() < 23 || ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return static_cast<double>(::timegm(&parts)) * 1e6 + std::strtod(utc.substr(20, 3).c_str(), nullptr) * 1e3;
}

}  // namespace

struct Service::Lane {
  std::size_t number = 0;
  std::vector<std::string> argv;
  std::unique_ptr<DeviceProcess> process;  // the lane's thread alone, as is the next
  double pinged_s = 0;
  // Below: under the service's mutex.
  std::string state = "starting", reason;
  json device;
  std::string job;
  double since_s = 0, life_s = 0, probed_s = 0;   // of the state; of the last sign of life; of the last probe that went well
  bool probing = false;
  int lost = 0;                            // in a row
  std::uint64_t replaced = 0;
  std::map<std::string, int> losses;       // of jobs that have cost processes
  std::thread thread;
};

Service::Service(ServiceOptions options, Log& log) : options_(std::move(options)), log_(log), queue_(options_.queue), began_s_(now_s()) {
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
  for (const Job& job : waiting)
    self.queue_.push({job.id, job.request.token, job.request.priority,
                      job.request.queue_timeout_s ? std::optional<double>(now_s() + *job.request.queue_timeout_s) : std::nullopt});
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
  self.janitor_ = std::thread([&self] { self.janitor(); });
  return out;
}

Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = stopping_ = true;
  }
  wake_.notify_all();
  for (const auto& lane : lanes_)
    if (lane->thread.joinable()) lane->thread.join();
  if (janitor_.joinable()) janitor_.join();
}

void Service::drain(double limit_s) {
  draining_ = true;
  wake_.notify_all();
  for (const double end = now_s() + limit_s; now_s() < end;) {
    {
      const std::lock_guard lock(mutex_);
      if (std::none_of(lanes_.begin(), lanes_.end(), [](const auto& each) { return !each->job.empty(); })) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// ---- who and how much

Result<Caller> Service::admit(std::optional<std::string_view> secret, const std::string& peer, const std::string& request_id) {
  Caller caller{std::nullopt, peer, request_id};
  if (secret) caller.token = tokens_->find(*secret);
  if ((secret || !tokens_->empty()) && !caller.token)
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
  if (kind == "check" || kind == "inspect") return fail(ErrorKind::unavailable, "this version cannot do jobs of kind {}", kind);
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
  request.priority = body.value("priority", 0);
  request.timeout_s = body.value("timeout_s", 0.0);
  if (body.contains("queue_timeout_s")) request.queue_timeout_s = body["queue_timeout_s"].get<double>();
  request.body = body["request"];
  HONE_CHECK(supports(request.kind));
  if (request.kind == "exec" && !caller.may(Scope::exec)) return fail(ErrorKind::unauthorized, "this token has not the scope exec");
  for (const char* side : {"candidate", "incumbent"})
    if (const auto candidate = request.body.find(side); candidate != request.body.end())
      for (const auto& [name, content] : candidate->at("files").items())
        if (content.is_object() && content.contains("sha256")) request.blobs.push_back(content["sha256"].get<std::string>());
  if (caller.token && caller.token->quotas.device_s > 0) {
    HONE_TRY(const double used, store_->ran_s(request.token, today()));
    if (used >= caller.token->quotas.device_s)
      return fail(ErrorKind::quota, "token {} has used its {} of device time of today (UTC)", caller.token->name, format_duration(caller.token->quotas.device_s));
  }
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return fail(ErrorKind::unavailable, "the service is being stopped");
    if (caller.token && caller.token->quotas.jobs > 0) queue_.limit_running(request.token, caller.token->quotas.jobs);
    HONE_CHECK(queue_.room_for(request.token));
  }
  HONE_TRY(Accepted accepted, store_->accept(request));
  if (!accepted.repeated) {
    metrics_.add("hone_jobs_accepted_total", {{"kind", request.kind}});
    {
      const std::lock_guard lock(mutex_);
      queue_.push({accepted.job.id, request.token, request.priority,
                   request.queue_timeout_s ? std::optional<double>(now_s() + *request.queue_timeout_s) : std::nullopt});
    }
    wake_.notify_one();
  }
  return Submitted{job_json(accepted.job), accepted.repeated};
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
    bool waiting = false;
    {
      const std::lock_guard lock(mutex_);
      waiting = queue_.remove(id);
    }
    if (waiting)
      end_job(job, JobState::cancelled, {{"error", error_json(make_error(ErrorKind::cancelled, "cancelled before it had begun"))}});
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

void Service::end_job(const Job& job, JobState state, json result) {
  std::string how = state == JobState::cancelled ? "cancelled" : "done";
  if (state == JobState::done && result.contains("error")) how = result["error"].value("kind", "error");
  // A change that cannot be written (disk full) stays queued or running: the next start takes it up again.
  const auto ended = store_->end_unstarted(job.id, state, result);
  if (!ended) {
    log_.warn("job_not_ended", {{"job", job.id}, {"error", error_json(ended.error())}});
    return;
  }
  metrics_.add("hone_jobs_total", {{"kind", job.request.kind}, {"outcome", how}});
  log_.info("job_ended", {{"job", job.id}, {"outcome", how}});
  changed(job.id);
}

// ---- devices

void Service::lane(Lane& lane, std::function<void(Result<>)> started) {
  auto first = start_device(lane);
  const bool good = first.has_value();
  started(std::move(first));
  if (!good && lane.number == 0) return;
  while (!stopping_) {
    if (!lane.process) {
      double wait_s = 0;
      {
        const std::lock_guard lock(mutex_);
        if (lane.lost >= kQuarantineAfter) wait_s = kQuarantine_s;
        else if (lane.lost > 1) wait_s = 0.1 * (1 << lane.lost);
        if (wait_s >= kQuarantine_s) lane.state = "quarantined";
      }
      for (const double end = now_s() + wait_s; now_s() < end && !stopping_;) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (stopping_) break;
      (void)start_device(lane);
      continue;
    }
    std::optional<Waiting> next;
    {
      std::unique_lock lock(mutex_);
      if (lane.state == "ready" && !lane.probing && !draining_) next = queue_.pop();
      if (!next) {
        wake_.wait_for(lock, std::chrono::duration<double>(lane.probing ? 0.001 : kTick_s));
        if (lane.state == "ready" && !lane.probing && !draining_) next = queue_.pop();
      }
      if (next) {
        lane.job = next->job;
        lane.state = "busy";
        lane.since_s = now_s();
      }
    }
    if (next) run(lane, *next);
    else idle(lane);
  }
  lane.process.reset();
}

Result<> Service::start_device(Lane& lane) {
  auto process = DeviceProcess::start(lane.argv, options_.start_s);
  const std::lock_guard lock(mutex_);
  if (!process) {
    ++lane.lost;
    lane.state = "starting";
    lane.reason = process.error().message;
    log_.warn("device_not_started", {{"device", lane.number}, {"error", error_json(process.error())}});
    return fail(std::move(process).error());
  }
  lane.process = *std::move(process);
  lane.device = lane.process->device();
  lane.state = "ready";
  lane.reason.clear();
  lane.since_s = lane.life_s = lane.probed_s = now_s();
  lane.probing = false;
  log_.info("device_ready", {{"device", lane.number}, {"pid", lane.process->pid()}, {"what", lane.device}});
  return {};
}

// Looks after an idle device: signs of life, and now and then a probe that really computes something.
void Service::idle(Lane& lane) {
  bool lost = false;
  std::string reason = "the device process has ended";
  json message;
  const double now = now_s();
  const bool ask_probe = !lane.probing && now - lane.probed_s > options_.probe_s && lane.state == "ready";
  if (ask_probe) {
    lost = !lane.process->send({{"probe", 1}});
    const std::lock_guard lock(mutex_);
    lane.probing = true;
    lane.since_s = now;
  } else if (now - lane.pinged_s > kPing_s) {
    lost = !lane.process->send({{"ping", 1}});
    lane.pinged_s = now;
  }
  while (!lost) {
    const auto got = lane.process->receive(message, lane.probing ? 0.02 : 0);
    if (got == Channel::Got::nothing) break;
    lost = got == Channel::Got::closed;
    if (lost) break;
    const std::lock_guard lock(mutex_);
    lane.life_s = now_s();
    if (message.contains("probed")) {
      lane.probing = false;
      if (message["error"].is_null()) lane.probed_s = lane.life_s, lane.lost = 0;
      else lost = true, reason = message["error"].value("message", "the probe failed");
    }
  }
  {
    const std::lock_guard lock(mutex_);
    // Its reader may answer while what computes is wedged: a probe that does not come back is silence too.
    const double silent_s = std::max(now_s() - lane.life_s, lane.probing ? now_s() - lane.since_s : 0.0);
    if (!lost && silent_s > options_.watchdog_s && lane.state == "ready") {
      lane.state = "stuck";
      lane.reason = fmt::format("no sign of life for {:.0f} s", silent_s);
      log_.warn("device_stuck", {{"device", lane.number}});
    } else if (!lost && silent_s <= options_.watchdog_s && lane.state == "stuck") {
      lane.state = "ready";
      lane.reason.clear();
    }
    if (silent_s > options_.replace_s) lost = true, reason = lane.reason;
  }
  if (!lost) return;
  lose(lane, reason);
}

// The device is given on when nothing of its process is left.
void Service::lose(Lane& lane, const std::string& reason) {
  log_.warn("device_lost", {{"device", lane.number}, {"job", lane.job.empty() ? json() : json(lane.job)}, {"reason", reason}});
  {
    const std::lock_guard lock(mutex_);
    lane.state = "replacing";
    lane.reason = reason;
    ++lane.lost;
    ++lane.replaced;
  }
  metrics_.add("hone_worker_replaced_total");
  lane.process.reset();
}

void Service::run(Lane& lane, const Waiting& waiting) {
  const auto free = [&](bool alive) {
    const std::lock_guard lock(mutex_);
    queue_.finished(waiting.token);
    lane.job.clear();
    lane.state = alive ? "ready" : "replacing";
    lane.since_s = now_s();
    wake_.notify_all();
  };
  auto job = store_->job(waiting.job);
  if (!job) return free(true);
  if (job->cancel_asked) {
    end_job(*job, JobState::cancelled, {{"error", error_json(make_error(ErrorKind::cancelled, "cancelled before it had begun"))}});
    return free(true);
  }
  // Blobs become text here: a device process knows nothing of the service's folders.
  json request = job->request.body;
  for (const char* side : {"candidate", "incumbent"})
    if (const auto candidate = request.find(side); candidate != request.end())
      for (auto& [name, content] : (*candidate)["files"].items())
        if (content.is_object() && content.contains("sha256")) {
          auto bytes = blobs_->get(content["sha256"].get<std::string>());
          if (!bytes) {
            end_job(*job, JobState::done, {{"error", error_json(bytes.error())}});
            return free(true);
          }
          content = {{"hex", to_hex(*bytes)}};
        }
  const auto lease = store_->start(job->id);
  if (!lease) {
    log_.warn("job_not_started", {{"job", job->id}, {"error", error_json(lease.error())}});
    if (lease.error().kind == ErrorKind::io) {   // the disk is full, say: it keeps its place
      const std::lock_guard lock(mutex_);
      queue_.push_front(waiting);
    }
    free(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return;
  }
  metrics_.observe("hone_job_queue_seconds", {{"kind", job->request.kind}},
                   std::max(0.0, microseconds(utc_timestamp()) - microseconds(job->accepted)) * 1e-6);
  changed(job->id);

  const double begin = now_s(), limit_s = job->request.timeout_s > 0 ? job->request.timeout_s : kDefaultTimeout_s;
  double asked_s = 0, pinged_s = begin, event_s = 0;
  std::string event;
  bool late = false, cancelled = false;
  std::string lost = "the device process has ended";
  std::optional<json> answer;
  bool alive = lane.process->send({{"job", job->id}, {"kind", job->request.kind}, {"request", std::move(request)}});
  json message;
  while (alive && !answer) {
    const auto got = lane.process->receive(message, 0.05);
    const double now = now_s();
    if (got == Channel::Got::closed) {
      alive = false;
      break;
    }
    if (got == Channel::Got::message) {
      const std::lock_guard lock(mutex_);
      lane.life_s = now;
      if (lane.state == "stuck") lane.state = "busy", lane.reason.clear();
    }
    if (got == Channel::Got::message && message.value("done", "") == job->id) {
      answer = json::object();
      if (message.contains("result")) *answer = std::move(message["result"]);
      if (message.contains("error")) (*answer)["error"] = std::move(message["error"]);
      break;
    }
    if (got == Channel::Got::message && message.value("job", "") == job->id) {
      const std::string name = message.value("event", "progress");
      if (name != event || now - event_s > kEventEvery_s) {
        event = name;
        event_s = now;
        (void)store_->add_event(job->id, name, message["data"]);
        changed(job->id);
      }
    }
    if (now - pinged_s > kPing_s) {
      pinged_s = now;
      alive = lane.process->send({{"ping", 1}});
      const auto fresh = store_->job(job->id);
      cancelled = fresh && fresh->cancel_asked;
    }
    late = late || now - begin > limit_s;
    if ((late || cancelled || stopping_) && asked_s == 0) {
      asked_s = now;
      (void)lane.process->send({{"cancel", job->id}});
    }
    if (stopping_ && asked_s > 0 && now - asked_s > 0.2) break;
    if (asked_s > 0 && now - asked_s > kCancelGrace_s) {
      alive = false;
      lost = "it did not stop when it was told to";
      break;
    }
    const std::lock_guard lock(mutex_);
    if (now - lane.life_s > options_.watchdog_s && lane.state == "busy") lane.state = "stuck", lane.reason = "no sign of life";
    if (now - lane.life_s > options_.replace_s) {
      alive = false;
      lost = fmt::format("the device process gave no sign of life for {:.0f} s", options_.replace_s);
    }
  }
  if (stopping_ && !answer) return;        // queued again at the next start
  const double ran_s = now_s() - begin;
  if (!answer && (late || cancelled)) answer = json::object();
  if (!answer) {
    const int losses = [&] {
      const std::lock_guard lock(mutex_);
      return ++lane.losses[job->id];
    }();
    if (losses >= kMostLosses)             // leases that a killed service cost are nobody's fault
      answer = json{{"error", error_json(make_error(ErrorKind::device, "{}; it has cost {} device processes", lost, losses))}};
  }
  if (answer) {
    if (late) (*answer)["error"] = error_json(make_error(ErrorKind::timeout, "the job did not end within its {}", format_duration(limit_s)));
    else if (cancelled) (*answer)["error"] = error_json(make_error(ErrorKind::cancelled, "cancelled while it ran"));
    const JobState state = cancelled && !late ? JobState::cancelled : JobState::done;
    const std::string how = state == JobState::cancelled ? "cancelled" : answer->contains("error") ? (*answer)["error"].value("kind", "error") : "done";
    auto kept = store_->finish(job->id, *lease, state, *answer, ran_s);
    for (int tries = 0; !kept && kept.error().kind == ErrorKind::io && tries < 300 && !stopping_; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kept = store_->finish(job->id, *lease, state, *answer, ran_s);
    }
    if (!kept) log_.warn("result_not_kept", {{"job", job->id}, {"error", error_json(kept.error())}});
    metrics_.add("hone_jobs_total", {{"kind", job->request.kind}, {"outcome", how}});
    metrics_.observe("hone_job_run_seconds", {{"kind", job->request.kind}}, ran_s);
    log_.info("job_ended", {{"job", job->id}, {"outcome", how}, {"ran_s", ran_s}});
    const std::lock_guard lock(mutex_);
    lane.losses.erase(job->id);
  } else if (const auto again = store_->requeue(job->id, *lease); again) {
    const std::lock_guard lock(mutex_);
    queue_.push_front(waiting);
  }
  changed(job->id);
  if (alive) {
    {
      const std::lock_guard lock(mutex_);
      lane.lost = 0;
      lane.probed_s = now_s();
    }
    return free(true);
  }
  lose(lane, lost);
  free(false);
}

void Service::janitor() {
  for (double collected_s = 0; !stopping_;) {
    for (const double end = now_s() + kJanitor_s; now_s() < end && !stopping_;) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (const auto read = tokens_->refresh(); !read) log_.warn("tokens_not_read", {{"error", error_json(read.error())}});
    std::vector<Waiting> expired;
    {
      const std::lock_guard lock(mutex_);
      expired = queue_.take_expired(now_s());
    }
    for (const Waiting& each : expired)
      if (const auto job = store_->job(each.job))
        end_job(*job, JobState::done,
                {{"error", error_json(make_error(ErrorKind::queue_timeout, "it waited longer than its {}", format_duration(job->request.queue_timeout_s.value_or(0))))}});
    if (now_s() - collected_s < kCollect_s) continue;
    collected_s = now_s();
    (void)store_->drop_old_jobs(options_.keep_jobs);
    if (const auto gone = store_->collect_blobs(options_.blob_bytes))
      for (const std::string& each : *gone) (void)blobs_->remove(each);
  }
}

// ---- blobs

Result<Blobs::Upload> Service::begin_blob(const Caller& caller, const std::string& sha256, std::uint64_t bytes) {
  if (!caller.may(Scope::submit)) return fail(ErrorKind::unauthorized, "this token has not the scope submit");
  if (caller.token && caller.token->quotas.bytes > 0) {
    HONE_TRY(const std::uint64_t used, store_->blob_bytes(caller.id()));
    if (used + bytes > caller.token->quotas.bytes)
      return fail(ErrorKind::quota, "token {} may keep {} of blobs and has {}", caller.token->name, format_bytes(caller.token->quotas.bytes), format_bytes(used));
  }
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
  json devices = json::array(), reasons = json::array();
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
                         {"sign_of_life_s", now - lane->life_s}, {"probe_s", now - lane->probed_s}, {"replaced", lane->replaced}});
    }
  }
  if (draining_) because("draining", "the service is being stopped");
  struct statvfs disk = {};
  const bool full = ::statvfs(options_.data.c_str(), &disk) != 0 || std::uint64_t{disk.f_bavail} * disk.f_frsize < kLeastFree;
  if (full) because("disk_full", fmt::format("{} has too little room", options_.data.string()));
  out.ok = any && !draining_ && !full;
  out.body = {{"schema", "hone.health/1"}, {"ok", out.ok}, {"reasons", std::move(reasons)}, {"version", options_.version},
              {"uptime_s", now - began_s_}, {"devices", std::move(devices)}, {"queue", {{"waiting", waiting}}}, {"exec", options_.exec},
              {"tokens", !tokens_->empty()}};
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
