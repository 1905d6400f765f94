// How a device's thread gets jobs done: starts its process, looks after it while idle, gives it a job at a time,
// and replaces it when it is lost.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "server/lane.h"

namespace hone::server {
namespace {

using nlohmann::json;

constexpr double kDefaultTimeout_s = 3600;
constexpr double kTick_s = 0.5;
constexpr double kPing_s = 1;
constexpr double kEventEvery_s = 0.25;     // lines of progress of one kind
constexpr double kCancelGrace_s = 10;      // from the wish to the kill
constexpr double kMostCompiling_s = 600;   // of one job, all its modules
constexpr int kMostLosses = 3;             // device processes that one job may cost
constexpr int kQuarantineAfter = 5;        // processes lost in a row
constexpr double kQuarantine_s = 30;       // between tries then

double limit_of(const Job& job) { return job.request.timeout_s > 0 ? job.request.timeout_s : kDefaultTimeout_s; }

}  // namespace

// What a device process did with a job.
struct Service::Watched {
  std::optional<json> answer;              // its own, or what `end` made of it
  json partial = json::array();            // workloads that it told of
  bool alive = true, late = false, cancelled = false;
  bool stopped = false;                    // this service ended it because it stops: no answer counts
  std::string lost = "the device process has ended";

  void end(const Error& error) {
    if (!answer) answer = json::object();
    (*answer)["error"] = error;
  }
};

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

// Takes jobs of kind compile whole, and sees to it that what others need is in the cache before their lease begins.
void Service::compile_lane(Lane& lane) {
  while (!stopping_) {
    if (!lane.process) {
      for (const double end = now_s() + (lane.lost == 0 ? 0 : std::min(kQuarantine_s, 0.1 * (1 << std::min(lane.lost, 10)))); now_s() < end && !stopping_;)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!stopping_) (void)start_device(lane);
      continue;
    }
    std::optional<Waiting> whole, first;
    {
      std::unique_lock lock(mutex_);
      const auto look = [&] {
        if (draining_) return;
        whole = queue_.pop(Needs::compiler);
        if (!whole) first = queue_.begin_compiling();
      };
      look();
      if (!whole && !first) {
        wake_.wait_for(lock, std::chrono::duration<double>(kTick_s));
        look();
      }
      if (!whole && !first) continue;
      lane.job = whole ? whole->job : first->job;
      lane.state = "busy";
      lane.since_s = lane.life_s = now_s();
    }
    if (whole) run(lane, *whole);
    else compile(lane, *first);
  }
  lane.process.reset();
}

// What does not compile ends here, without a lease. Whatever else comes of it: the job goes on to a device.
void Service::compile(Lane& lane, const Waiting& waiting) {
  Watched seen;
  const auto job = store_->job(waiting.job);
  if (job && !job->cancel_asked)
    if (auto request = with_blobs(job->request.body)) {
      Job first = *job;
      first.request.kind = "prepare";
      first.request.timeout_s = kMostCompiling_s;
      seen = watch(lane, first, *std::move(request));
    }
  const bool ends = seen.answer && !seen.answer->empty() && !seen.late && !seen.cancelled && !seen.stopped;
  std::optional<Waiting> ended;
  {
    const std::lock_guard lock(mutex_);
    if (ends) ended = queue_.remove(waiting.job);
    else queue_.compiled(waiting.job);
  }
  if (ended) end_job(*job, JobState::done, *seen.answer, now_s() - ended->since_s);
  {
    const std::lock_guard lock(mutex_);
    lane.job.clear();
    lane.state = seen.alive ? "ready" : "replacing";
    lane.since_s = now_s();
    if (seen.alive) lane.lost = 0;
    wake_.notify_all();
  }
  if (!seen.alive) lose(lane, seen.lost);
}

Result<> Service::start_device(Lane& lane) {
  auto process = DeviceProcess::start(lane.argv, options_.start_s);
  const std::lock_guard lock(mutex_);
  if (!process) {
    ++lane.lost;
    lane.state = "starting";
    lane.reason = process.error().message;
    log_.warn("device_not_started", {{lane.role, lane.number}, {"error", json(process.error())}});
    return fail(std::move(process).error());
  }
  lane.process = *std::move(process);
  lane.pid = lane.process->pid();
  lane.device = lane.process->device();
  lane.state = "ready";
  lane.reason.clear();
  lane.since_s = lane.life_s = lane.probed_s = now_s();
  lane.probing = false;
  log_.info("device_ready", {{lane.role, lane.number}, {"pid", lane.process->pid()}, {"what", lane.device}});
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
      log_.warn("device_stuck", {{lane.role, lane.number}});
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
  log_.warn("device_lost", {{lane.role, lane.number}, {"job", lane.job.empty() ? json() : json(lane.job)}, {"reason", reason}});
  {
    const std::lock_guard lock(mutex_);
    lane.state = "replacing";
    lane.reason = reason;
    lane.pid = 0;
    ++lane.lost;
    ++lane.replaced;
  }
  metrics_.add("hone_worker_replaced_total");
  lane.process.reset();
}

// A device process reads blobs itself: large sources cost this process no memory.
Result<json> Service::with_blobs(json request) const {
  for (const char* side : {"candidate", "incumbent"})
    if (const auto candidate = request.find(side); candidate != request.end())
      for (auto& [name, content] : (*candidate)["files"].items())
        if (content.is_object() && content.contains("sha256")) {
          const std::string hash = content["sha256"].get<std::string>();
          if (!blobs_->holds(hash)) return fail(ErrorKind::not_found, "blob {} is not here any more", hash);
          content["file"] = fs::absolute(blobs_->place_of(hash)).string();
        }
  return request;
}

void Service::run(Lane& lane, const Waiting& waiting) {
  bool alive = true;
  if (const auto job = store_->job(waiting.job)) {
    auto request = job->cancel_asked ? Result<json>(fail(ErrorKind::cancelled, "cancelled before it had begun")) : with_blobs(job->request.body);
    if (request) alive = lead(lane, waiting, *job, *std::move(request));
    else end_job(*job, job->cancel_asked ? JobState::cancelled : JobState::done, {{"error", json(request.error())}}, now_s() - waiting.since_s);
  }
  const std::lock_guard lock(mutex_);
  queue_.finished(waiting.token);
  lane.job.clear();
  lane.state = alive ? "ready" : "replacing";
  lane.since_s = now_s();
  wake_.notify_all();
}

Service::Watched Service::watch(Lane& lane, const Job& job, json request) {
  const double begin = now_s(), limit_s = limit_of(job);
  double asked_s = 0, pinged_s = begin, event_s = 0;
  std::string event;
  Watched seen;
  seen.alive = lane.process->send({{"job", job.id}, {"kind", job.request.kind}, {"request", std::move(request)}});
  for (json message; seen.alive;) {
    const auto got = lane.process->receive(message, 0.05);
    const double now = now_s();
    if (got == Channel::Got::closed) {
      seen.alive = false;
      break;
    }
    if (got == Channel::Got::message) {
      const std::lock_guard lock(mutex_);
      lane.life_s = now;
      if (lane.state == "stuck") lane.state = "busy", lane.reason.clear();
    }
    if (got == Channel::Got::message && message.value("done", "") == job.id) {
      seen.answer = json::object();
      if (message.contains("result")) seen.answer = std::move(message["result"]);
      if (message.contains("error")) (*seen.answer)["error"] = std::move(message["error"]);
      break;
    }
    if (got == Channel::Got::message && message.value("job", "") == job.id) {
      const std::string name = message.value("event", "progress");
      const bool line = message["data"].contains("progress");
      if (!line || name != event || now - event_s > kEventEvery_s) {
        if (line) event = name, event_s = now;
        if (name == "judged") seen.partial.push_back(message["data"]);
        (void)store_->add_event(job.id, name, message["data"]);
        changed(job.id);
      }
    }
    if (now - pinged_s > kPing_s) {
      pinged_s = now;
      seen.alive = lane.process->send({{"ping", 1}});
      const auto fresh = store_->job(job.id);
      seen.cancelled = fresh && fresh->cancel_asked;
    }
    seen.late = seen.late || now - begin > limit_s;
    if ((seen.late || seen.cancelled || stopping_) && asked_s == 0) {
      asked_s = now;
      seen.stopped = !seen.late && !seen.cancelled;
      (void)lane.process->send({{"cancel", job.id}});
    }
    if (stopping_ && asked_s > 0 && now - asked_s > 0.2) break;
    if (asked_s > 0 && now - asked_s > kCancelGrace_s) {
      seen.alive = false;
      seen.lost = "it did not stop when it was told to";
      break;
    }
    const std::lock_guard lock(mutex_);
    if (now - lane.life_s > options_.watchdog_s && lane.state == "busy") lane.state = "stuck", lane.reason = "no sign of life";
    if (now - lane.life_s > options_.replace_s) {
      seen.alive = false;
      seen.lost = fmt::format("the device process gave no sign of life for {:.0f} s", options_.replace_s);
    }
  }
  return seen;
}

// What cannot be written (disk full) is held until it can: the device waits with it.
Result<> Service::insist(const Job& job, const std::function<Result<>()>& write) {
  auto written = write();
  for (bool told = false; !written && written.error().kind == ErrorKind::io && !stopping_; told = true) {
    if (!told) log_.warn("job_waits_for_the_disk", {{"job", job.id}, {"error", json(written.error())}});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    written = write();
  }
  return written;
}

void Service::keep(const Job& job, std::int64_t lease, JobState state, const json& answer, double ran_s) {
  const auto kept = insist(job, [&] { return store_->finish(job.id, lease, state, answer, ran_s); });
  if (!kept) return log_.warn("result_not_kept", {{"job", job.id}, {"error", json(kept.error())}});
  const std::string how = state == JobState::cancelled ? "cancelled" : answer.contains("error") ? answer["error"].value("kind", "error") : "done";
  metrics_.add("hone_jobs_total", {{"kind", job.request.kind}, {"outcome", how}});
  metrics_.observe("hone_job_run_seconds", {{"kind", job.request.kind}}, ran_s);
  log_.info("job_ended", {{"job", job.id}, {"outcome", how}, {"ran_s", ran_s}});
}

// From the lease to the kept result. False: the device process is lost.
bool Service::lead(Lane& lane, const Waiting& waiting, const Job& job, json request) {
  const double waited_s = now_s() - waiting.since_s;
  const auto lease = store_->start(job.id, waited_s);
  if (!lease) {
    log_.warn("job_not_started", {{"job", job.id}, {"error", json(lease.error())}});
    if (lease.error().kind == ErrorKind::io) {   // the disk is full, say: it keeps its place
      {
        const std::lock_guard lock(mutex_);
        queue_.push_front(waiting);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return true;
  }
  metrics_.observe("hone_job_queue_seconds", {{"kind", job.request.kind}}, waited_s);
  changed(job.id);

  const double begin = now_s();
  Watched seen = watch(lane, job, std::move(request));
  if (seen.stopped || (stopping_ && !seen.answer)) return seen.alive;   // queued again at the next start
  const double ran_s = now_s() - begin;
  if (!seen.answer && !seen.late && !seen.cancelled) {
    const int losses = [&] {
      const std::lock_guard lock(mutex_);
      return ++lane.losses[job.id];
    }();
    if (losses >= kMostLosses)             // leases that a killed service cost are nobody's fault
      seen.end(make_error(ErrorKind::device, "{}; it has cost {} device processes", seen.lost, losses));
  }
  if (seen.late) seen.end(make_error(ErrorKind::timeout, "the job did not end within its {}", format_duration(limit_of(job))));
  else if (seen.cancelled) seen.end(make_error(ErrorKind::cancelled, "cancelled while it ran"));
  if (seen.answer) {
    if (!seen.answer->contains("report") && !seen.partial.empty()) (*seen.answer)["partial"] = {{"workloads", std::move(seen.partial)}};
    keep(job, *lease, seen.cancelled && !seen.late ? JobState::cancelled : JobState::done, *seen.answer, ran_s);
    const std::lock_guard lock(mutex_);
    lane.losses.erase(job.id);
  } else if (const auto again = insist(job, [&] { return store_->requeue(job.id, *lease); }); again) {
    const std::lock_guard lock(mutex_);
    Waiting anew = waiting;
    anew.since_s = now_s();
    queue_.push_front(std::move(anew));
  }
  changed(job.id);
  if (!seen.alive) {
    lose(lane, seen.lost);
    return false;
  }
  const std::lock_guard lock(mutex_);
  lane.lost = 0;
  lane.life_s = lane.probed_s = now_s();   // keeping the result may have waited for the disk
  return true;
}

}  // namespace hone::server
