// Routing by softmax and top k: hard inputs, float64 oracle.
#include <cuda_runtime.h>
#include <hone/task.h>

#include <cstdio>
#include <string_view>

namespace {

using Int = std::int64_t;
enum class Set { ascending, one_lane, masked, equal_rows };

void check(const hone::TaskCall& call, const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(status));
  call.fail(call.sink, text);
}

// In `equal_rows` row 0 stays as it is, so no thread reads what another writes.
__global__ void change(float* x, Int tokens, Int experts, Int chosen, Set set, std::uint64_t seed, std::uint32_t call) {
  for (Int i = Int{blockIdx.x} * blockDim.x + threadIdx.x; i < tokens * experts; i += Int{gridDim.x} * blockDim.x) {
    const Int token = i / experts, expert = i % experts;
    const Int first = hone::below(hone::random_u32(seed, 1000, call, static_cast<std::uint64_t>(token)), static_cast<std::uint64_t>(experts));
    const Int step = experts >= 32 * chosen ? 32 : 1, distance = (expert - first + experts) % experts;
    if (set == Set::ascending) x[i] = static_cast<float>(expert) * 0.0625f;
    if (set == Set::one_lane && distance % step == 0 && distance / step < chosen) x[i] += 16;
    if (set == Set::masked && distance >= chosen) x[i] = -3.0e38f;
    if (set == Set::equal_rows && token > 0) x[i] = x[expert];
  }
}

// One thread a token; the experts in order of logits by their ranks. weights and indices are [tokens][chosen].
__global__ void oracle(const float* x, double* weights, double* indices, Int tokens, Int experts, Int chosen) {
  const Int token = Int{blockIdx.x} * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  const float* const row = x + token * experts;
  double largest = -INFINITY, sum = 0;
  for (Int e = 0; e < experts; ++e) largest = fmax(largest, static_cast<double>(row[e]));
  for (Int e = 0; e < experts; ++e) sum += exp(static_cast<double>(row[e]) - largest);
  for (Int e = 0; e < experts; ++e) {
    Int rank = 0;
    for (Int other = 0; other < experts; ++other) rank += row[other] > row[e] || (row[other] == row[e] && other < e);
    if (rank >= chosen) continue;
    weights[token * chosen + rank] = exp(static_cast<double>(row[e]) - largest) / sum;
    indices[token * chosen + rank] = static_cast<double>(e);
  }
}

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view name = call->input_set;
  Set set;
  if (name == "ascending") set = Set::ascending;
  else if (name == "one-lane") set = Set::one_lane;
  else if (name == "masked") set = Set::masked;
  else if (name == "equal-rows") set = Set::equal_rows;
  else return;
  change<<<4096, 256, 0, static_cast<cudaStream_t>(call->stream)>>>(call->data<float>("x"), call->axis("T"), call->axis("E"), call->axis("K"), set,
                                                         call->seed, call->call);
  check(*call, "making the inputs");
}

void hone_oracle(const hone::TaskCall* call) {
  const Int tokens = call->axis("T");
  oracle<<<static_cast<unsigned>((tokens + 127) / 128), 128, 0, static_cast<cudaStream_t>(call->stream)>>>(
      call->data<float>("x"), call->tensor("weights").reference, call->tensor("indices").reference, tokens, call->axis("E"), call->axis("K"));
  check(*call, "the oracle");
}
