// Plain CUDA: tiles of 32 by 128 in float32 from shared memory, 4 by 4 sums a thread, 32 of K at a time. 32 divides 224, so
// the rows of a tile are of one group, or padding.
#include <cuda_fp8.h>
#include <hone/types.h>

__device__ float decode(unsigned char byte) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(byte, __NV_E4M3))); }
// 2^(byte - 127); 0 is the denormal 2^-127, 255 NaN.
__device__ float decode_scale(unsigned char byte) {
  if (byte == 0) return __int_as_float(0x00400000);
  return __int_as_float(byte == 255 ? 0x7fc00000 : byte << 23);
}

__global__ void __launch_bounds__(256) grouped_gemm(const unsigned char* a, const unsigned char* scale_a, const unsigned char* b,
                                                    const unsigned char* scale_b, const int* groups, hone::bf16* d, int rows, int n, int k) {
  __shared__ float left[32][33], right[32][129];   // [depth][row or column]
  const int row0 = blockIdx.y * 32, column0 = blockIdx.x * 128, tx = threadIdx.x % 32, ty = threadIdx.x / 32;
  const int group = groups[row0];
  if (group < 0) return;
  float sums[4][4] = {};
  for (int at = 0; at < k; at += 32) {
    const long long word = at / 512, part = at / 128 % 4;
    __syncthreads();
    for (int row = ty; row < 32; row += 8)
      left[tx][row] = decode(a[static_cast<long long>(row0 + row) * k + at + tx]) * decode_scale(scale_a[(word * rows + row0 + row) * 4 + part]);
    for (int column = ty; column < 128; column += 8)
      right[tx][column] = decode(b[(static_cast<long long>(group) * n + column0 + column) * k + at + tx]) *
                          decode_scale(scale_b[((group * static_cast<long long>(k / 512) + word) * n + column0 + column) * 4 + part]);
    __syncthreads();
    for (int c = 0; c < 32; ++c)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sums[i][j] += left[c][ty * 4 + i] * right[c][tx + 32 * j];
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) d[static_cast<long long>(row0 + ty * 4 + i) * n + column0 + tx + 32 * j] = hone::to_bf16(sums[i][j]);
}
