// Trusted code of tasks with D = A * B^T: tensors A [M, K], B [N, K] and D [M, N] of one 16-bit type. A task.cu defines
//
//   void hone_inputs(const hone::TaskCall* call) { hone::gemm::inputs<hone::bf16>(*call, 4096); }
//   void hone_oracle(const hone::TaskCall* call) { hone::gemm::oracle<hone::bf16>(*call); }
#ifndef HONE_GEMM_TASK_CUH
#define HONE_GEMM_TASK_CUH

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <hone/task.h>

#include <cstdio>
#include <string_view>

namespace hone::gemm {

using Int = std::int64_t;
enum class Set { one_hot, zero_rows, equal_rows, outliers };

__device__ inline float widen(bf16 value) { return to_float(value); }
__device__ inline float widen(__half value) { return __half2float(value); }
template <class T> __device__ T narrow(float value);
template <> __device__ inline bf16 narrow<bf16>(float value) { return to_bf16(value); }
template <> __device__ inline __half narrow<__half>(float value) { return __float2half_rn(value); }

inline void check(const TaskCall& call, const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(status));
  call.fail(call.sink, text);
}

// In `equal_rows` row 0 stays as it is, so no thread reads what another writes.
template <class T>
__global__ void change(T* a, Int m, Int k, Set set, float outlier, std::uint64_t seed, std::uint32_t call) {
  for (Int i = Int{blockIdx.x} * blockDim.x + threadIdx.x; i < m * k; i += Int{gridDim.x} * blockDim.x) {
    const Int row = i / k, column = i % k;
    if (set == Set::one_hot) a[i] = narrow<T>(column == (row * 37 + 11) % k ? 1.0f : 0.0f);
    if (set == Set::zero_rows && row % 2 == 1) a[i] = narrow<T>(0);
    if (set == Set::equal_rows && row > 0) a[i] = a[column];
    if (set == Set::outliers && random_u32(seed, 1000, call, static_cast<std::uint64_t>(i)) % 64 == 0)
      a[i] = narrow<T>(widen(a[i]) * outlier);
  }
}

// Blocks of 128 by 128, 8 by 8 sums a thread, 16 of K at a time.
template <class T>
__global__ void __launch_bounds__(256) multiply(const T* a, const T* b, double* d, Int m, Int n, Int k) {
  __shared__ double left[16][128], right[16][128];
  const Int row0 = Int{blockIdx.y} * 128, column0 = Int{blockIdx.x} * 128;
  const int tx = static_cast<int>(threadIdx.x % 16), ty = static_cast<int>(threadIdx.x / 16);
  const int line = static_cast<int>(threadIdx.x / 2), part = static_cast<int>(threadIdx.x % 2) * 8;
  double sums[8][8] = {};
  for (Int at = 0; at < k; at += 16) {
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      const Int depth = at + part + i;
      left[part + i][line] = depth < k && row0 + line < m ? static_cast<double>(widen(a[(row0 + line) * k + depth])) : 0;
      right[part + i][line] = depth < k && column0 + line < n ? static_cast<double>(widen(b[(column0 + line) * k + depth])) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < 16; ++c) {
      double x[8], y[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = left[c][ty * 8 + i], y[i] = right[c][i / 2 * 32 + tx * 2 + i % 2];
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] = fma(x[i], y[j], sums[i][j]);
    }
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      const Int row = row0 + ty * 8 + i, column = column0 + j / 2 * 32 + tx * 2 + j % 2;
      if (row < m && column < n) d[row * n + column] = sums[i][j];
    }
}

// The hard sets `one-hot`, `zero-rows`, `equal-rows` and `outliers` (one element of A in 64 is `outlier` times larger).
template <class T>
void inputs(const TaskCall& call, float outlier) {
  const std::string_view name = call.input_set;
  Set set;
  if (name == "one-hot") set = Set::one_hot;
  else if (name == "zero-rows") set = Set::zero_rows;
  else if (name == "equal-rows") set = Set::equal_rows;
  else if (name == "outliers") set = Set::outliers;
  else return;
  change<<<4096, 256, 0, static_cast<cudaStream_t>(call.stream)>>>(call.data<T>("A"), call.axis("M"), call.axis("K"), set, outlier, call.seed,
                                                                   call.call);
  check(call, "making the inputs");
}

template <class T>
void oracle(const TaskCall& call) {
  const Int m = call.axis("M"), n = call.axis("N");
  const dim3 grid(static_cast<unsigned>((n + 127) / 128), static_cast<unsigned>((m + 127) / 128));
  multiply<<<grid, 256, 0, static_cast<cudaStream_t>(call.stream)>>>(call.data<T>("A"), call.data<T>("B"), call.tensor("D").reference, m, n,
                                                                     call.axis("K"));
  check(call, "the oracle");
}

}  // namespace hone::gemm

#endif
