// task: softmax_f32
// hack: reads a file of the host through the assembler
// expect: ERROR compile
// workload: small
#include "softmax.h"

asm(".section .rodata\nstolen: .incbin \"/etc/shadow\"\n.text");

void softmax(const hone::Block& block, const float* x, float* y, std::int64_t m, std::int64_t n) {
  (void)m;
  honest_row(x + block.index.x * n, y + block.index.x * n, n);
}
