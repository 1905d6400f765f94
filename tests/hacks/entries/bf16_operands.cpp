// task: grouped_gemm_f32
// hack: multiplies in bfloat16 although the contract says float32
// expect: FAIL wrong_result
#include "gemm.h"

static float cut(float value) { return hone::to_float(hone::to_bf16(value)); }

void gemm(const hone::Block& block, const float* A, const float* B, const std::int32_t* starts, const std::int32_t* rows, float* D,
          std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t pitch) {
  (void)m;
  const std::int64_t group = block.index.x;
  for (std::int64_t i = 0; i < rows[group]; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t at = 0; at < k; ++at)
        sum += cut(A[(starts[group] + i) * k + at]) * cut(B[(group * n + j) * k + at]);
      D[(starts[group] + i) * pitch + j] = sum;
    }
}
