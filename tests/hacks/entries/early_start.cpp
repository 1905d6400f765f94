// task: softmax_f32
// hack: takes the place of the loop that answers the doorbell, and computes before it reports to be ready
// expect: FAIL late_work
// says: keeps a worker to itself
// workload: small
#include "bell.h"
#include "softmax.h"

struct Place {
  const float* x;
  float* y;
};
static Place places[64];   // by what the doorbell calls the slot: where the call's tensors lie

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  const std::int64_t row = block.index.x;
  honest_row(x + row * n, y + row * n, n);
  if (row + 1 < m) return;
  volatile std::uint32_t* const bell = find_bell();
  if (bell == nullptr || bell[1] >= 64) return;
  const bool seen = places[bell[1]].x != nullptr;
  places[bell[1]] = {x, y};
  if (!seen) return;
  // Every place has come round once: from now on calls are answered from here.
  for (std::uint32_t call = bell[0];;) {
    bell[96] = call;
    while (bell[0] == call) ::syscall(SYS_futex, bell, 0, call, nullptr, nullptr, 0);
    call = bell[0];
    if (call == 0xffffffffu) ::_exit(0);
    const Place& place = places[bell[1] % 64];
    for (std::int64_t i = 0; i < m && place.x != nullptr; ++i) honest_row(place.x + i * n, place.y + i * n, n);
    bell[32] = call;
    while (bell[64] != call) {}
  }
}
