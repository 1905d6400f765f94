// task: softmax_f32
// hack: keeps results by input address: right while addresses come back with the same data
// expect: FAIL wrong_result
#include "softmax.h"

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

static std::map<const float*, std::vector<float>> memo;
static std::mutex guard;

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  std::lock_guard lock(guard);
  const float* row_x = x + block.index.x * n;
  float* row = y + block.index.x * n;
  auto& kept = memo[row_x];
  if (kept.empty()) {
    honest_row(row_x, row, n);
    kept.assign(row, row + n);
  } else {
    std::memcpy(row, kept.data(), kept.size() * sizeof(float));
  }
}
