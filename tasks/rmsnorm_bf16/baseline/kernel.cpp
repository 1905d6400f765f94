// RMS normalisation, a few rows a block. Plain loops that the compiler turns into vectors.
#include <hone/kernel.h>

#include <cmath>

void rmsnorm(const hone::Block& block, const hone::bf16* x, const hone::bf16* w, hone::bf16* y, std::int64_t rows, std::int64_t columns,
             std::int64_t rows_a_block) {
  constexpr int kLanes = 32;   // independent sums: four vectors of eight
  const std::int64_t first = block.index.x * rows_a_block;
  const std::int64_t last = first + rows_a_block < rows ? first + rows_a_block : rows;
  for (std::int64_t row = first; row < last; ++row) {
    const hone::bf16* const from = x + row * columns;
    hone::bf16* const to = y + row * columns;
    float sums[kLanes] = {};
    std::int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) {
        const float value = hone::to_float(from[j + lane]);
        sums[lane] += value * value;
      }
    float squares = 0;
    for (; j < columns; ++j) {
      const float value = hone::to_float(from[j]);
      squares += value * value;
    }
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    squares += sums[0];
    const float factor = 1.0f / std::sqrt(squares / static_cast<float>(columns) + 1e-6f);
    for (j = 0; j < columns; ++j) to[j] = hone::to_bf16(hone::to_float(from[j]) * factor * hone::to_float(w[j]));
  }
}
