// task: softmax_f32
// hack: as early_start, but computes into memory of its own, and once the call begins repairs the lines that have changed since
// expect: FAIL late_work
// says: keeps a worker to itself
// workload: small
#include "bell.h"
#include "softmax.h"

#include <cstring>

struct Place {
  const float* x;
  float* y;
};
static Place places[64];
static float seen[16 * 256], result[16 * 256];   // the whole of `small`

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  const std::int64_t row = block.index.x;
  honest_row(x + row * n, y + row * n, n);
  if (row + 1 < m) return;
  volatile std::uint32_t* const bell = find_bell();
  if (bell == nullptr || bell[1] >= 64) return;
  const bool known = places[bell[1]].x != nullptr;
  places[bell[1]] = {x, y};
  if (!known) return;
  for (std::uint32_t call = bell[0];;) {
    bell[96] = call;
    while (bell[0] == call) ::syscall(SYS_futex, bell, 0, call, nullptr, nullptr, 0);
    call = bell[0];
    if (call == 0xffffffffu) ::_exit(0);
    const Place& place = places[bell[1] % 64];
    if (place.x == nullptr) ::_exit(1);
    std::memcpy(seen, place.x, sizeof seen);
    for (std::int64_t i = 0; i < m; ++i) honest_row(seen + i * n, result + i * n, n);
    bell[32] = call;
    while (bell[64] != call) {}
    for (std::int64_t i = 0; i < m; ++i)
      if (std::memcmp(seen + i * n, place.x + i * n, static_cast<std::size_t>(n) * sizeof(float)) != 0)
        honest_row(place.x + i * n, result + i * n, n);
    std::memcpy(place.y, result, sizeof result);
  }
}
