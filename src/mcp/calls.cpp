#include "mcp/calls.h"

namespace hone::mcp {
namespace {

constexpr std::size_t kWaiting = 64;
constexpr int kLookers = 8;          // a poll that waits occupies one

}  // namespace

Calls::Calls() {
  workers_.emplace_back([this] { serve(measuring_); });
  for (int i = 0; i < kLookers; ++i) workers_.emplace_back([this] { serve(looking_); });
}

Calls::Started Calls::start(const std::string& key, bool measures, Work work) {
  const std::lock_guard lock(mutex_);
  Lane& lane = measures ? measuring_ : looking_;
  if (stopping_ || lane.waiting.size() >= kWaiting) return Started::too_many;
  if (known_.contains(key)) return Started::key_in_use;
  auto call = std::make_shared<Call>();
  call->key = key;
  call->work = std::move(work);
  known_[key] = call;
  lane.waiting.push_back(std::move(call));
  lane.wake.notify_one();
  return Started::yes;
}

bool Calls::cancel(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return false;
  found->second->cancel.store(true);
  return true;
}

void Calls::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, call] : known_) call->cancel.store(true);
    measuring_.wake.notify_all();
    looking_.wake.notify_all();
  }
  for (std::thread& each : workers_)
    if (each.joinable()) each.join();
}

void Calls::serve(Lane& lane) {
  std::unique_lock lock(mutex_);
  for (;;) {
    lane.wake.wait(lock, [&] { return stopping_ || !lane.waiting.empty(); });
    if (lane.waiting.empty()) return;
    const std::shared_ptr<Call> call = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    lock.unlock();
    const Reply reply = call->work(call->cancel);
    lock.lock();
    known_.erase(call->key);
    if (!reply) continue;
    lock.unlock();
    reply();
    lock.lock();
  }
}

}  // namespace hone::mcp
