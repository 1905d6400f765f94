#include "server/queue.h"

#include <algorithm>

namespace hone::server {

Result<> Queue::room_for(const std::string& token) const {
  if (waiting_ >= limits_.jobs)
    return fail(make_error(ErrorKind::unavailable, "{} jobs are waiting already", waiting_)
                    .with_hint("submit again later; Retry-After says when"));
  if (const std::size_t own = waiting_of(token); own >= limits_.jobs_of_token)
    return fail(make_error(ErrorKind::quota, "{} jobs of this token are waiting already", own)
                    .with_hint("submit again when some of them are done"));
  return {};
}

void Queue::push(Waiting job) {
  Line& line = lines_[job.token];
  line.by_priority[job.priority].push_back(std::move(job));
  ++line.waiting;
  ++waiting_;
}

void Queue::push_front(Waiting job) {
  Line& line = lines_[job.token];
  line.by_priority[job.priority].push_front(std::move(job));
  ++line.waiting;
  ++waiting_;
}

template <class F>
Queue::Found Queue::first(bool running, F&& wanted) {
  Found best;
  const auto rank = [](const Found& each) { return std::tuple(-each.priority, each.line->running, each.line->served); };
  const auto of = [&](Line& line) {
    for (auto& [priority, jobs] : line.by_priority)
      for (std::size_t i = 0; i < jobs.size(); ++i)
        if (wanted(jobs[i])) return Found{&line, priority, i};
    return Found{};
  };
  for (auto& [token, line] : lines_) {
    if (line.waiting == 0 || (running && !may_run(line))) continue;
    const Found found = of(line);
    if (found.line != nullptr && (best.line == nullptr || rank(found) < rank(best))) best = found;
  }
  return best;
}

std::optional<Waiting> Queue::pop(Needs needs) {
  const Found best = first(true, [&](const Waiting& each) { return each.needs == needs; });
  if (best.line == nullptr) return std::nullopt;
  const auto jobs = best.line->by_priority.find(best.priority);
  Waiting next = std::move(jobs->second[best.index]);
  jobs->second.erase(jobs->second.begin() + static_cast<std::ptrdiff_t>(best.index));
  if (jobs->second.empty()) best.line->by_priority.erase(jobs);
  --best.line->waiting;
  --waiting_;
  ++best.line->running;
  best.line->served = ++served_;
  return next;
}

std::optional<Waiting> Queue::begin_compiling() {
  const Found best = first(false, [](const Waiting& each) { return each.needs == Needs::compiler_then_device && !each.compiling; });
  if (best.line == nullptr) return std::nullopt;
  Waiting& next = best.line->by_priority.at(best.priority)[best.index];
  next.compiling = true;
  return next;
}

void Queue::compiled(const std::string& job) {
  for (auto& [token, line] : lines_)
    for (auto& [priority, jobs] : line.by_priority)
      for (Waiting& each : jobs)
        if (each.job == job) each.needs = Needs::device, each.compiling = false;
}

void Queue::finished(const std::string& token) {
  const auto line = lines_.find(token);
  if (line == lines_.end() || line->second.running == 0) return;
  --line->second.running;
  forget_if_idle(token);
}

// Tokens come and go; what an idle one leaves is its limit and nothing else.
void Queue::forget_if_idle(const std::string& token) {
  const auto line = lines_.find(token);
  if (line != lines_.end() && line->second.waiting == 0 && line->second.running == 0 && !line->second.limit)
    lines_.erase(line);
}

std::optional<Waiting> Queue::remove(const std::string& job) {
  for (auto& [token, line] : lines_)
    for (auto jobs = line.by_priority.begin(); jobs != line.by_priority.end(); ++jobs) {
      const auto found = std::find_if(jobs->second.begin(), jobs->second.end(), [&](const Waiting& each) { return each.job == job; });
      if (found == jobs->second.end()) continue;
      Waiting out = std::move(*found);
      jobs->second.erase(found);
      if (jobs->second.empty()) line.by_priority.erase(jobs);
      --line.waiting;
      --waiting_;
      forget_if_idle(std::string(token));
      return out;
    }
  return std::nullopt;
}

std::vector<Waiting> Queue::take_expired(double now_s) {
  std::vector<Waiting> out;
  for (const auto& [token, line] : lines_)
    for (const auto& [priority, jobs] : line.by_priority)
      for (const Waiting& job : jobs)
        if (job.expires_s && *job.expires_s <= now_s) out.push_back(job);
  for (const Waiting& job : out) remove(job.job);
  return out;
}

void Queue::limit_running(const std::string& token, std::optional<std::size_t> jobs) {
  lines_[token].limit = jobs;
  forget_if_idle(token);
}

std::size_t Queue::waiting_of(const std::string& token) const {
  const auto line = lines_.find(token);
  return line == lines_.end() ? 0 : line->second.waiting;
}

std::size_t Queue::running_of(const std::string& token) const {
  const auto line = lines_.find(token);
  return line == lines_.end() ? 0 : line->second.running;
}

std::optional<std::size_t> Queue::ahead_of(const std::string& job) const {
  Queue rest = *this;                      // limits on running jobs do not matter for the order
  rest.limits_.running_of_token = SIZE_MAX;
  for (auto& [token, line] : rest.lines_) {
    line.limit.reset();
    for (auto& [priority, jobs] : line.by_priority)
      for (Waiting& each : jobs) each.needs = Needs::device;
  }
  for (std::size_t ahead = 0;; ++ahead) {
    const auto next = rest.pop();
    if (!next) return std::nullopt;
    if (next->job == job) return ahead;
  }
}

}  // namespace hone::server
