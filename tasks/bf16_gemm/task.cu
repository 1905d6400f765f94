// BF16 GEMM: hard inputs, float64 oracle.
#include <cuda_runtime.h>
#include <hone/task.h>

#include <cstdio>
#include <string_view>

namespace {

using Int = std::int64_t;
enum class Set { one_hot, zero_rows, equal_rows, outliers };

void check(const hone::TaskCall& call, const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(status));
  call.fail(call.sink, text);
}

// In `equal_rows` row 0 stays as it is, so no thread reads what another writes.
__global__ void change(hone::bf16* a, Int m, Int k, Set set, std::uint64_t seed, std::uint32_t call) {
  for (Int i = Int{blockIdx.x} * blockDim.x + threadIdx.x; i < m * k; i += Int{gridDim.x} * blockDim.x) {
    const Int row = i / k, column = i % k;
    if (set == Set::one_hot) a[i] = hone::to_bf16(column == (row * 37 + 11) % k ? 1.0f : 0.0f);
    if (set == Set::zero_rows && row % 2 == 1) a[i] = hone::to_bf16(0);
    if (set == Set::equal_rows && row > 0) a[i] = a[column];
    if (set == Set::outliers && hone::random_u32(seed, 1000, call, static_cast<std::uint64_t>(i)) % 64 == 0)
      a[i] = hone::to_bf16(hone::to_float(a[i]) * 4096);
  }
}

// Blocks of 128 by 128, 8 by 8 sums a thread, 16 of K at a time.
__global__ void __launch_bounds__(256) oracle(const hone::bf16* a, const hone::bf16* b, double* d, Int m, Int n, Int k) {
  __shared__ double left[16][128], right[16][128];
  const Int row0 = Int{blockIdx.y} * 128, column0 = Int{blockIdx.x} * 128;
  const int tx = static_cast<int>(threadIdx.x % 16), ty = static_cast<int>(threadIdx.x / 16);
  const int line = static_cast<int>(threadIdx.x / 2), part = static_cast<int>(threadIdx.x % 2) * 8;
  double sums[8][8] = {};
  for (Int at = 0; at < k; at += 16) {
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      const Int depth = at + part + i;
      left[part + i][line] = depth < k && row0 + line < m ? static_cast<double>(hone::to_float(a[(row0 + line) * k + depth])) : 0;
      right[part + i][line] = depth < k && column0 + line < n ? static_cast<double>(hone::to_float(b[(column0 + line) * k + depth])) : 0;
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

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view set = call->input_set;
  const auto run = [&](Set which) {
    change<<<4096, 256, 0, static_cast<cudaStream_t>(call->stream)>>>(call->data<hone::bf16>("A"), call->axis("M"), call->axis("K"), which, call->seed,
                                                           call->call);
    check(*call, "making the inputs");
  };
  if (set == "one-hot") run(Set::one_hot);
  if (set == "zero-rows") run(Set::zero_rows);
  if (set == "equal-rows") run(Set::equal_rows);
  if (set == "outliers") run(Set::outliers);
}

void hone_oracle(const hone::TaskCall* call) {
  const Int m = call->axis("M"), n = call->axis("N");
  const dim3 grid(static_cast<unsigned>((n + 127) / 128), static_cast<unsigned>((m + 127) / 128));
  oracle<<<grid, 256, 0, static_cast<cudaStream_t>(call->stream)>>>(call->data<hone::bf16>("A"), call->data<hone::bf16>("B"),
                                                                    call->tensor("D").reference, m, n, call->axis("K"));
  check(*call, "the oracle");
}
