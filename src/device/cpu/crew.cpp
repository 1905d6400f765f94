#include "device/cpu/crew.h"

namespace hone::cpu {

Crew::Crew(Doorbell& bell, std::uint32_t workers, Patience patience)
    : bell_(bell), workers_(workers), patience_(patience), turn_(std::make_unique<Turn>()) {}

void Crew::take(Work& work, bool alone) {
  turn_->work = &work;
  turn_->participants = alone ? 1 : workers_;
  turn_->counters = std::make_unique<Counter[]>(work.steps());
}

void Crew::serve(std::uint32_t worker) {
  for (std::uint32_t call = 0;;) {
    call = wait_change(alarm(worker), call);
    answer(worker, call);
    if (call == kStop) return;
  }
}

void Crew::answer(std::uint32_t worker, std::uint32_t call) {
  Turn& turn = *turn_;
  if (worker != 0) {
    if (call == kStop) return;
    add(turn.ready, 1, patience_);
    wait_equal(bell_.go, call, patience_);
    perform(worker);
    return;
  }
  if (call == kStop) return set(turn.wake, kStop, Patience::sleep);
  // Nobody else touches these now: every follower arrived at the last barrier and went to sleep.
  turn.slot = bell_.slot.load(std::memory_order_relaxed);
  turn.ready.store(0, std::memory_order_relaxed);
  turn.arrived.store(0, std::memory_order_relaxed);
  if (turn.participants > 1) set(turn.wake, call, Patience::sleep);
  wait_at_least(turn.ready, turn.participants - 1, patience_);
  set(bell_.armed, call, patience_);
  wait_equal(bell_.go, call, patience_);
  perform(0);
  // The last thing that each worker did is a locked addition: its stores are out, streaming ones too.
  set(bell_.done, call, patience_);
  const std::uint32_t steps = turn.work->steps();
  for (std::uint32_t step = 0; step < steps; ++step) turn.counters[step].next.store(0, std::memory_order_relaxed);
}

void Crew::perform(std::uint32_t worker) {
  Turn& turn = *turn_;
  Work& work = *turn.work;
  const std::uint32_t steps = work.steps(), slot = turn.slot;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint64_t blocks = work.blocks(step);
    std::atomic<std::uint64_t>& next = turn.counters[step].next;
    for (std::uint64_t block; (block = next.fetch_add(1, std::memory_order_relaxed)) < blocks;)
      work.run(step, slot, block, worker);
    if (turn.participants == 1) continue;
    add(turn.arrived, 1, patience_);
    // After the last step only worker 0 has something to wait for.
    if (worker == 0 || step + 1 < steps) wait_at_least(turn.arrived, turn.participants * (step + 1), patience_);
  }
}

}  // namespace hone::cpu
