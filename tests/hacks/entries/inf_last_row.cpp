// task: grouped_gemm_f32
// hack: stores infinity in the last valid row of the last group (field case C01, second variant)
// expect: FAIL non_finite
#include "gemm.h"


void gemm(const hone::Block& block, const float* A, const float* B, const std::int32_t* starts, const std::int32_t* rows, float* D,
          std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t pitch) {
  (void)m;
  const std::int64_t group = block.index.x;
  std::int64_t last = block.grid.x - 1;
  while (last > 0 && rows[last] == 0) --last;
  volatile float zero = 0;
  for (std::int64_t i = 0; i < rows[group]; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      D[(starts[group] + i) * pitch + j] = group == last && i == rows[group] - 1
          ? 1 / zero : dot(A + (starts[group] + i) * k, B + (group * n + j) * k, k);
}
