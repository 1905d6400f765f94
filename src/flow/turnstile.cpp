#include "flow/turnstile.h"

#include <algorithm>
#include <chrono>

namespace hone {

std::optional<Turnstile::Pass> Turnstile::enter(const std::function<bool()>& gone, const std::function<void(int)>& waiting) {
  std::unique_lock held(mutex_);
  const std::uint64_t mine = next_++;
  line_.push_back(mine);
  int told = 0;
  while (line_.front() != mine) {
    const auto before = static_cast<int>(std::find(line_.begin(), line_.end(), mine) - line_.begin());
    held.unlock();
    if (waiting && before != told) waiting(before);
    told = before;
    const bool left = gone && gone();
    held.lock();
    if (left) {
      line_.erase(std::find(line_.begin(), line_.end(), mine));
      moved_.notify_all();
      return std::nullopt;
    }
    if (line_.front() != mine) moved_.wait_for(held, std::chrono::milliseconds(100));
  }
  return Pass(this);
}

void Turnstile::leave() {
  const std::lock_guard held(mutex_);
  line_.pop_front();
  moved_.notify_all();
}

int Turnstile::depth() const {
  const std::lock_guard held(mutex_);
  return static_cast<int>(line_.size());
}

}  // namespace hone
