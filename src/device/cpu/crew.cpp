#include "device/cpu/crew.h"

namespace hone::cpu {

void Crew::lead(Work& work, bool alone) {
  work_ = &work;
  participants_ = alone ? 1 : workers_;
  const std::uint32_t steps = work.steps();
  counters_ = std::make_unique<Counter[]>(steps);
  for (std::uint32_t call = 0;;) {
    call = wait_change(bell_.call, call);
    if (call == kStop) break;
    // Nobody else touches these now: every follower arrived at the last barrier and went to sleep.
    slot_ = bell_.slot.load(std::memory_order_relaxed);
    for (std::uint32_t step = 0; step < steps; ++step) counters_[step].next.store(0, std::memory_order_relaxed);
    ready_.store(0, std::memory_order_relaxed);
    arrived_.store(0, std::memory_order_relaxed);
    if (participants_ > 1) set(wake_, call, Patience::sleep);
    work.prepare(slot_, 0);
    wait_at_least(ready_, participants_ - 1, patience_);
    set(bell_.armed, call, patience_);
    perform(0, call);
    set(bell_.done, call, patience_);
  }
  set(wake_, kStop, Patience::sleep);
}

void Crew::follow(std::uint32_t worker) {
  for (std::uint32_t call = 0;;) {
    call = wait_change(wake_, call);
    if (call == kStop) return;
    work_->prepare(slot_, worker);
    add(ready_, 1, patience_);
    perform(worker, call);
  }
}

void Crew::perform(std::uint32_t worker, std::uint32_t call) {
  Work& work = *work_;
  const std::uint32_t steps = work.steps(), slot = slot_;
  wait_equal(bell_.go, call, patience_);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint64_t blocks = work.blocks(step);
    std::atomic<std::uint64_t>& next = counters_[step].next;
    for (std::uint64_t block; (block = next.fetch_add(1, std::memory_order_relaxed)) < blocks;)
      work.run(step, slot, block, worker);
    if (participants_ == 1) continue;
    add(arrived_, 1, patience_);
    // After the last step only worker 0 has something to wait for.
    if (worker == 0 || step + 1 < steps) wait_at_least(arrived_, participants_ * (step + 1), patience_);
  }
}

}  // namespace hone::cpu
