// Softmax on a GPU: hard inputs, float64 oracle.
#include <cuda_runtime.h>
#include <hone/task.h>

#include <cstdio>
#include <string_view>

namespace {

using Int = std::int64_t;
enum class Set { masked, max_last, max_first, lone_peak, scaled_rows, equal_rows };

void check(const hone::TaskCall& call, const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(status));
  call.fail(call.sink, text);
}

// One block a row. In `equal_rows` row 0 stays as it is, so no block reads what another writes.
__global__ void change(float* x, Int n, Set set, std::uint64_t seed, std::uint32_t call) {
  const Int i = blockIdx.x;
  float* const row = x + i * n;
  const auto draw = [&](std::uint32_t what, std::uint64_t limit) {
    return hone::below(hone::random_u32(seed, 1000 + what, call, static_cast<std::uint64_t>(i)), limit);
  };
  for (Int j = threadIdx.x; j < n; j += blockDim.x) {
    if (set == Set::masked && (i % 5 == 4 || (i + j) % 3 == 0)) row[j] = -3.0e38f;
    if (set == Set::max_last && j == n - 1) row[j] = 12;
    if (set == Set::max_first && j == 0) row[j] = 12;
    if (set == Set::lone_peak && j == draw(0, static_cast<std::uint64_t>(n))) row[j] = 150 + static_cast<float>(draw(1, 1051));
    if (set == Set::scaled_rows && i % 2 == 1) row[j] += 500;
    if (set == Set::equal_rows && i > 0) row[j] = x[j];
  }
}

template <class Join>
__device__ double reduce(double value, double* shared, Join join) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const double out = shared[0];
  __syncthreads();
  return out;
}

__global__ void __launch_bounds__(256) oracle(const float* x, double* y, Int n) {
  __shared__ double shared[256];
  const float* const from = x + blockIdx.x * n;
  double* const to = y + blockIdx.x * n;
  double largest = -INFINITY, sum = 0;
  for (Int j = threadIdx.x; j < n; j += 256) largest = fmax(largest, static_cast<double>(from[j]));
  largest = reduce(largest, shared, [](double a, double b) { return fmax(a, b); });
  for (Int j = threadIdx.x; j < n; j += 256) sum += to[j] = exp(static_cast<double>(from[j]) - largest);
  sum = reduce(sum, shared, [](double a, double b) { return a + b; });
  for (Int j = threadIdx.x; j < n; j += 256) to[j] /= sum;
}

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view set = call->input_set;
  const auto run = [&](Set which) {
    change<<<static_cast<unsigned>(call->axis("M")), 256, 0, static_cast<cudaStream_t>(call->stream)>>>(call->data<float>("x"), call->axis("N"), which,
                                                                                             call->seed, call->call);
    check(*call, "making the inputs");
  };
  if (set == "masked") run(Set::masked);
  if (set == "max-last") run(Set::max_last);
  if (set == "max-first") run(Set::max_first);
  if (set == "lone-peak") run(Set::lone_peak);
  if (set == "scaled-rows") run(Set::scaled_rows);
  if (set == "equal-rows") run(Set::equal_rows);
}

void hone_oracle(const hone::TaskCall* call) {
  oracle<<<static_cast<unsigned>(call->axis("M")), 256, 0, static_cast<cudaStream_t>(call->stream)>>>(call->data<float>("x"),
                                                                                           call->tensor("y").reference, call->axis("N"));
  check(*call, "the oracle");
}
