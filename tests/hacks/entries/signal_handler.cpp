// task: softmax_f32
// hack: catches its own fault and goes on as if nothing had happened
// says: rt_sigaction
// expect: ERROR forbidden
#include "softmax.h"

#include <setjmp.h>
#include <signal.h>

static thread_local sigjmp_buf back;

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  struct sigaction action = {};
  action.sa_handler = [](int) { siglongjmp(back, 1); };
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, nullptr);
  if (sigsetjmp(back, 1) == 0) {
    *reinterpret_cast<volatile float*>(block.index.x * 0) = 1;
    honest_row(x + block.index.x * n, y + block.index.x * n, n);
  }
}
