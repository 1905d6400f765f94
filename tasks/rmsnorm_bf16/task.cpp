// RMS normalisation: hard inputs, float64 oracle.
#include <hone/task.h>

#include <cmath>
#include <string_view>

namespace {

using Int = std::int64_t;

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view set = call->input_set;
  auto* x = call->data<hone::bf16>("x");
  const Int m = call->axis("M"), n = call->axis("N");
  const hone::bf16 zero = hone::to_bf16(0);
  for (Int i = 0; i < m; ++i) {
    hone::bf16* const row = x + i * n;
    if (set == "random") {
      const auto choice = hone::below(hone::random_u32(call->seed, 1000, call->call, static_cast<std::uint64_t>(i)), 7);
      const float scale = static_cast<float>(1 << choice) / 8.0f;
      for (Int j = 0; j < n; ++j) row[j] = hone::to_bf16(hone::to_float(row[j]) * scale);
    }
    if (set == "one-hot") {
      const std::uint32_t drawn = hone::random_u32(call->seed, 1001, call->call, static_cast<std::uint64_t>(i));
      for (Int j = 0; j < n; ++j) row[j] = zero;
      row[hone::below(drawn, static_cast<std::uint32_t>(n))] = hone::to_bf16(3);
    }
    if (set == "zero-rows" && i % 2 == 1)
      for (Int j = 0; j < n; ++j) row[j] = zero;
    if (set == "outlier-last") row[n - 1] = hone::to_bf16(i % 2 == 0 ? 3000.0f : -3000.0f);
    if (set == "scaled-rows" && i % 2 == 1)
      for (Int j = 0; j < n; ++j) row[j] = hone::to_bf16(hone::to_float(row[j]) * 1048576.0f);
    if (set == "equal-rows" && i > 0)
      for (Int j = 0; j < n; ++j) row[j] = x[j];
  }
}

void hone_oracle(const hone::TaskCall* call) {
  const auto* x = call->data<hone::bf16>("x");
  const auto* w = call->data<hone::bf16>("w");
  double* y = call->tensor("y").reference;
  const Int m = call->axis("M"), n = call->axis("N");
  for (Int i = 0; i < m; ++i) {
    double squares = 0;
    for (Int j = 0; j < n; ++j) {
      const double value = static_cast<double>(hone::to_float(x[i * n + j]));
      squares += value * value;
    }
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
    for (Int j = 0; j < n; ++j)
      y[i * n + j] = static_cast<double>(hone::to_float(x[i * n + j])) * factor * static_cast<double>(hone::to_float(w[j]));
  }
}
