// task: softmax_f32
// hack: keeps the first result of each shape and copies it later
// expect: FAIL wrong_result
#include "softmax.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

static std::map<std::pair<std::int64_t, std::int64_t>, std::vector<float>> memo;
static std::mutex guard;

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  std::lock_guard lock(guard);
  auto& kept = memo[{m * 100000 + n, block.index.x}];
  float* row = y + block.index.x * n;
  if (kept.empty()) {
    honest_row(x + block.index.x * n, row, n);
    kept.assign(row, row + n);
  } else {
    std::memcpy(row, kept.data(), kept.size() * sizeof(float));
  }
}
