// Softmax: hard inputs, float64 oracle.
#include <hone/task.h>

#include <cmath>
#include <string_view>

namespace {

using Int = std::int64_t;

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view set = call->input_set;
  auto* x = call->data<float>("x");
  const Int m = call->axis("M"), n = call->axis("N");
  for (Int i = 0; i < m; ++i) {
    float* const row = x + i * n;
    if (set == "masked")
      for (Int j = 0; j < n; ++j)
        if (i % 5 == 4 || (i + j) % 3 == 0) row[j] = -3.0e38f;
    if (set == "max-last") row[n - 1] = 12;
    if (set == "max-first") row[0] = 12;
    if (set == "lone-peak") {
      const auto draw = [&](std::uint64_t what, Int limit) {
        return hone::below(hone::random_u32(call->seed, 1000 + what, call->call, static_cast<std::uint64_t>(i)),
                           static_cast<std::uint32_t>(limit));
      };
      row[draw(0, n)] = 150 + static_cast<float>(draw(1, 1051));
    }
    if (set == "scaled-rows" && i % 2 == 1)
      for (Int j = 0; j < n; ++j) row[j] += 500;
    if (set == "equal-rows" && i > 0)
      for (Int j = 0; j < n; ++j) row[j] = x[j];
  }
}

void hone_oracle(const hone::TaskCall* call) {
  const auto* x = call->data<float>("x");
  double* y = call->tensor("y").reference;
  const Int m = call->axis("M"), n = call->axis("N");
  for (Int i = 0; i < m; ++i) {
    double largest = -INFINITY, sum = 0;
    for (Int j = 0; j < n; ++j) largest = std::fmax(largest, static_cast<double>(x[i * n + j]));
    for (Int j = 0; j < n; ++j) sum += y[i * n + j] = std::exp(static_cast<double>(x[i * n + j]) - largest);
    for (Int j = 0; j < n; ++j) y[i * n + j] /= sum;
  }
}
