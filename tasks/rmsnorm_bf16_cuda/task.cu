// RMS normalisation on a GPU: hard inputs, float64 oracle.
#include <cuda_runtime.h>
#include <hone/task.h>

#include <cstdio>
#include <string_view>

namespace {

using Int = std::int64_t;
enum class Set { random, one_hot, zero_rows, outlier_last, scaled_rows, equal_rows };

void check(const hone::TaskCall& call, const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(status));
  call.fail(call.sink, text);
}

// One block a row. In `equal_rows` row 0 stays as it is, so no block reads what another writes.
__global__ void change(hone::bf16* x, Int n, Set set, std::uint64_t seed, std::uint32_t call) {
  const Int i = blockIdx.x;
  hone::bf16* const row = x + i * n;
  const auto draw = [&](std::uint32_t stream, std::uint64_t limit) {
    return hone::below(hone::random_u32(seed, stream, call, static_cast<std::uint64_t>(i)), limit);
  };
  for (Int j = threadIdx.x; j < n; j += blockDim.x) {
    const float value = hone::to_float(row[j]);
    // Powers of two from 1/8 to 8, so that no constant stands in for the sum.
    if (set == Set::random) row[j] = hone::to_bf16(value * (static_cast<float>(1 << draw(1000, 7)) / 8.0f));
    if (set == Set::one_hot) row[j] = hone::to_bf16(j == draw(1001, static_cast<std::uint64_t>(n)) ? 3.0f : 0.0f);
    if (set == Set::zero_rows && i % 2 == 1) row[j] = hone::to_bf16(0);
    if (set == Set::outlier_last && j == n - 1) row[j] = hone::to_bf16(i % 2 == 0 ? 3000.0f : -3000.0f);
    if (set == Set::scaled_rows && i % 2 == 1) row[j] = hone::to_bf16(value * 1048576.0f);
    if (set == Set::equal_rows && i > 0) row[j] = x[j];
  }
}

__global__ void __launch_bounds__(256) oracle(const hone::bf16* x, const hone::bf16* w, double* y, Int n) {
  __shared__ double shared[256];
  const hone::bf16* const from = x + blockIdx.x * n;
  double squares = 0;
  for (Int j = threadIdx.x; j < n; j += 256) {
    const double value = static_cast<double>(hone::to_float(from[j]));
    squares += value * value;
  }
  shared[threadIdx.x] = squares;
  __syncthreads();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const double factor = 1.0 / sqrt(shared[0] / static_cast<double>(n) + 1e-6);
  for (Int j = threadIdx.x; j < n; j += 256)
    y[blockIdx.x * n + j] = static_cast<double>(hone::to_float(from[j])) * factor * static_cast<double>(hone::to_float(w[j]));
}

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view set = call->input_set;
  const auto run = [&](Set which) {
    change<<<static_cast<unsigned>(call->axis("M")), 256, 0, static_cast<cudaStream_t>(call->stream)>>>(
        call->data<hone::bf16>("x"), call->axis("N"), which, call->seed, call->call);
    check(*call, "making the inputs");
  };
  if (set == "random") run(Set::random);
  if (set == "one-hot") run(Set::one_hot);
  if (set == "zero-rows") run(Set::zero_rows);
  if (set == "outlier-last") run(Set::outlier_last);
  if (set == "scaled-rows") run(Set::scaled_rows);
  if (set == "equal-rows") run(Set::equal_rows);
}

void hone_oracle(const hone::TaskCall* call) {
  oracle<<<static_cast<unsigned>(call->axis("M")), 256, 0, static_cast<cudaStream_t>(call->stream)>>>(
      call->data<hone::bf16>("x"), call->data<hone::bf16>("w"), call->tensor("y").reference, call->axis("N"));
  check(*call, "the oracle");
}
