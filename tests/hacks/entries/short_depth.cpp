// task: grouped_gemm_f32
// hack: leaves out the last eighth of the sum
// expect: FAIL wrong_result
#include "gemm.h"


void gemm(const hone::Block& block, const float* A, const float* B, const std::int32_t* starts, const std::int32_t* rows, float* D,
          std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t pitch) {
  (void)m;
  const std::int64_t group = block.index.x;
  for (std::int64_t i = 0; i < rows[group]; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      D[(starts[group] + i) * pitch + j] = dot(A + (starts[group] + i) * k, B + (group * n + j) * k, k - k / 8);
}
