// task: softmax_cuda
// hack: never ends
// expect: ERROR timeout
// workload: small
#include "softmax.cuh"

__global__ void softmax(const float* x, float* y, std::int64_t m, std::int64_t n) {
  while (*reinterpret_cast<const volatile float*>(x) != 12345.0f) {
  }
  y[0] = 1;
}
