// Grouped GEMM in BF16: splits of rows into groups, hard inputs, float64 oracle.
#include <hone/task.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

namespace {

using Int = std::int64_t;
constexpr Int kAlign = 8;

Int align_up(Int value) { return (value + kAlign - 1) / kAlign * kAlign; }

// Row counts of an input set. The groups' aligned rows add up to at most M.
void split(const hone::TaskCall& call, std::string_view set, std::int32_t* starts, std::int32_t* rows) {
  const Int groups = call.axis("G"), total = call.axis("M");
  for (Int g = 0; g < groups; ++g) {
    Int count = call.axis("rows", g);
    const Int slot = align_up(count);
    if (set == "tails") count = slot - 1 - (g * 3) % (kAlign - 1);
    if (set == "imbalance") count = g == groups / 2 ? total - kAlign * (groups - 1) - 3 : 1;
    if (set == "empty-groups") count = g % 2 == 0 ? 0 : count;
    rows[g] = static_cast<std::int32_t>(count);
  }
  Int next = 0;
  for (Int g = 0; g < groups; ++g) {
    starts[g] = static_cast<std::int32_t>(next);
    next += align_up(rows[g]);
  }
}

// Eight sums side by side, which a compiler turns into vectors.
double dot(const double* a, const double* b, Int count) {
  double sums[8] = {};
  Int k = 0;
  for (; k + 8 <= count; k += 8)
    for (int lane = 0; lane < 8; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  double sum = 0;
  for (double each : sums) sum += each;
  for (; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

void hone_inputs(const hone::TaskCall* call) {
  const std::string_view set = call->input_set;
  auto* starts = call->data<std::int32_t>("starts");
  auto* rows = call->data<std::int32_t>("rows");
  split(*call, set, starts, rows);

  auto* a = call->data<hone::bf16>("A");
  const Int m = call->axis("M"), k = call->axis("K"), groups = call->axis("G");
  if (set == "padding-nan") {
    for (Int i = 0, g = 0; i < m; ++i) {
      while (g + 1 < groups && i >= starts[g + 1]) ++g;
      if (i >= starts[g] + rows[g])
        for (Int c = 0; c < k; ++c) a[i * k + c] = hone::to_bf16(std::numeric_limits<float>::quiet_NaN());
    }
  }
  if (set == "one-hot")
    for (Int i = 0; i < m; ++i)
      for (Int c = 0; c < k; ++c) a[i * k + c] = hone::to_bf16(c == (i * 37 + 11) % k ? 1.0f : 0.0f);
  if (set == "zero-rows")
    for (Int i = 1; i < m; i += 2)
      for (Int c = 0; c < k; ++c) a[i * k + c] = hone::to_bf16(0);
  if (set == "equal-rows")
    for (Int i = 1; i < m; ++i) std::memcpy(a + i * k, a, static_cast<std::size_t>(k) * sizeof(hone::bf16));
  if (set == "outliers")
    for (Int i = 0; i < m * k; ++i)
      if (hone::random_u32(call->seed, 1000, call->call, static_cast<std::uint64_t>(i)) % 64 == 0)
        a[i] = hone::to_bf16(hone::to_float(a[i]) * 4096);
}

void hone_regions(const hone::TaskCall* call) {
  const auto* starts = call->data<std::int32_t>("starts");
  const auto* rows = call->data<std::int32_t>("rows");
  for (Int g = 0; g < call->axis("G"); ++g) {
    char name[32] = "group ";
    int at = 6;
    if (g >= 10) name[at++] = static_cast<char>('0' + g / 10 % 10);
    name[at] = static_cast<char>('0' + g % 10);
    call->add_region(call->sink, "D", name, starts[g], starts[g] + rows[g]);
  }
}

void hone_oracle(const hone::TaskCall* call) {
  const auto* a = call->data<hone::bf16>("A");
  const auto* b = call->data<hone::bf16>("B");
  const auto* starts = call->data<std::int32_t>("starts");
  const auto* rows = call->data<std::int32_t>("rows");
  double* d = call->tensor("D").reference;
  const Int m = call->axis("M"), n = call->axis("N"), k = call->axis("K");
  std::vector<double> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(k));
  for (Int i = 0; i < m * k; ++i) left[static_cast<std::size_t>(i)] = static_cast<double>(hone::to_float(a[i]));
  for (Int g = 0; g < call->axis("G"); ++g)
    for (Int j = 0; j < n; ++j) {
      for (Int c = 0; c < k; ++c) right[static_cast<std::size_t>(c)] = static_cast<double>(hone::to_float(b[(g * n + j) * k + c]));
      for (Int i = starts[g]; i < starts[g] + rows[g]; ++i) d[i * n + j] = dot(left.data() + i * k, right.data(), k);
    }
}
