// Four vectors a thread, so that enough loads are on their way.
__global__ void __launch_bounds__(256) copy(const float* x, float* y, int count) {
  float4 values[4];
  const int first = static_cast<int>(blockIdx.x) * 1024 + static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * 256 < count) values[i] = __ldcs(reinterpret_cast<const float4*>(x) + first + i * 256);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * 256 < count) __stcs(reinterpret_cast<float4*>(y) + first + i * 256, values[i]);
}
