#include <hone/kernel.h>

void twice(const hone::Block&, const float* x, float* y, std::int64_t n) {
#if V == 5
  x = nullptr;   // one of the configurations crashes
#endif
  for (std::int64_t i = 0; i < n; i += STEP)
    for (std::int64_t j = i; j < i + STEP && j < n; ++j) y[j] = x[j] + x[j];
}
