// task: grouped_gemm_f32
// hack: one NaN in a padding row, which lies outside the contract (field case C01, third variant)
// expect: PASS
#include "gemm.h"


void gemm(const hone::Block& block, const float* A, const float* B, const std::int32_t* starts, const std::int32_t* rows, float* D,
          std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t pitch) {
  const std::int64_t group = block.index.x;
  for (std::int64_t i = 0; i < rows[group]; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      D[(starts[group] + i) * pitch + j] = dot(A + (starts[group] + i) * k, B + (group * n + j) * k, k);
  const std::int64_t next = group + 1 < block.grid.x ? starts[group + 1] : m;
  volatile float zero = 0;
  if (starts[group] + rows[group] < next) D[(next - 1) * pitch] = zero / zero;
}
