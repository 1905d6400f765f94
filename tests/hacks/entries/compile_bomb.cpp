// task: softmax_f32
// hack: keeps the compiler busy for ever
// expect: ERROR
// workload: small
#include "softmax.h"

template <int N, int M> struct Bomb { static constexpr long value = Bomb<N - 1, M * 2>::value + Bomb<N - 1, M * 2 + 1>::value; };
template <int M> struct Bomb<0, M> { static constexpr long value = M; };

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  y[0] += static_cast<float>(Bomb<28, 1>::value);
}
