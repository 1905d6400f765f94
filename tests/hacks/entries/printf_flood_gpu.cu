// task: softmax_cuda
// hack: prints a megabyte of lines, and is right
// expect: PASS
// workload: small
#include "softmax.cuh"

#include <cstdio>

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  const float* const from = x + blockIdx.x * n;
  float* const to = y + blockIdx.x * n;
  honest_row(from, to, n);
  for (int i = 0; threadIdx.x == 0 && i < 20; ++i) printf("a line that nobody wants to read, printed by every block, %d\n", i);
}
