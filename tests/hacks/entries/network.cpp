// task: softmax_f32
// hack: opens a socket
// expect: ERROR forbidden
// workload: small
// says: socket
#include "softmax.h"

#include <sys/socket.h>

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
  ::socket(AF_INET, SOCK_STREAM, 0);
}
