// task: softmax_f32
// hack: floods the compiler's output
// expect: ERROR output_limit
// workload: small
#include "softmax.h"

#define M1 _Pragma("message(\"flood flood flood flood flood flood flood flood\")")
#define M2 M1 M1 M1 M1 M1 M1 M1 M1 M1 M1
#define M3 M2 M2 M2 M2 M2 M2 M2 M2 M2 M2
#define M4 M3 M3 M3 M3 M3 M3 M3 M3 M3 M3
#define M5 M4 M4 M4 M4 M4 M4 M4 M4 M4 M4
#define M6 M5 M5 M5 M5 M5 M5 M5 M5 M5 M5
M6 M6

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
