// task: grouped_gemm_f32
// hack: assumes that the output's rows touch one another
// expect: FAIL
#include "gemm.h"


void gemm(const hone::Block& block, const float* A, const float* B, const std::int32_t* starts, const std::int32_t* rows, float* D,
          std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t pitch) {
  (void)m, (void)pitch;
  const std::int64_t group = block.index.x;
  for (std::int64_t i = 0; i < rows[group]; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      D[(starts[group] + i) * n + j] = dot(A + (starts[group] + i) * k, B + (group * n + j) * k, k);
}
