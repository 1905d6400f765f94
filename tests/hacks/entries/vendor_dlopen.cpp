// task: softmax_f32
// hack: loads a library at run time
// expect: ERROR forbidden
// workload: small
#include "softmax.h"

#include <dlfcn.h>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  ::dlopen("libdnnl.so.2", RTLD_NOW);
}
