// One warp a token. The row stays in registers, lane l holds experts l, l + 32, ...; each round takes the largest that is left.
template <int Each>
__global__ void __launch_bounds__(256) route(const float* x, float* weights, int* indices, int tokens, int experts, int chosen) {
  const int token = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (token >= tokens) return;
  const float* const row = x + static_cast<long long>(token) * experts;
  float values[Each], largest = -INFINITY, sum = 0;
  unsigned taken = 0;   // a bit for each of this lane's experts
  for (int i = 0; i < Each; ++i) {
    values[i] = i * 32 + lane < experts ? row[i * 32 + lane] : -INFINITY;
    largest = fmaxf(largest, values[i]);
  }
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  for (int i = 0; i < Each; ++i) sum += expf(values[i] - largest);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  for (int k = 0; k < chosen; ++k) {
    float best = -INFINITY;
    int expert = 0x7fffffff;
    for (int i = 0; i < Each; ++i)
      if (!(taken >> i & 1) && (values[i] > best || expert == 0x7fffffff)) best = values[i], expert = i * 32 + lane;
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(~0u, best, offset);
      const int index = __shfl_xor_sync(~0u, expert, offset);
      if (other > best || (other == best && index < expert)) best = other, expert = index;
    }
    if (expert % 32 == lane) taken |= 1u << expert / 32;
    if (lane == 0) {
      weights[static_cast<long long>(token) * chosen + k] = expf(best - largest) / sum;
      indices[static_cast<long long>(token) * chosen + k] = expert;
    }
  }
}
