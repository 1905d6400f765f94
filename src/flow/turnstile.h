// One measurement at a time, in the order in which they were asked for.
#ifndef HONE_FLOW_TURNSTILE_H
#define HONE_FLOW_TURNSTILE_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace hone {

class Turnstile {
 public:
  // Whoever has it may measure; the next one may when it is gone.
  class Pass {
   public:
    Pass(Pass&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (owner_ != nullptr) owner_->leave();
    }

   private:
    friend class Turnstile;
    explicit Pass(Turnstile* owner) : owner_(owner) {}
    Turnstile* owner_;
  };

  // nullopt: `gone` turned true while it waited. `waiting` is told how many are before, whenever that changes.
  std::optional<Pass> enter(const std::function<bool()>& gone, const std::function<void(int)>& waiting = {});
  int depth() const;                   // that wait or measure

 private:
  void leave();

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::deque<std::uint64_t> line_;     // the first one measures
  std::uint64_t next_ = 0;
};

}  // namespace hone

#endif
