__global__ void steady(const float* x, float* y, int steps) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = x[i];
  float v = 0;
#pragma unroll 16
  for (int step = 0; step < steps; ++step) v = 0.5f * v + value;
  y[i] = v;
}
