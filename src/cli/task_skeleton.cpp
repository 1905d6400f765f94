#include "cli/task_skeleton.h"

namespace hone::cli {
namespace {

constexpr const char* kTaskYaml = R"(schema: hone.task/1
summary: "Scaled residual: y = x * w + r, w by column. Replace it by your operation."
device: cpu

# What a workload fixes. Shapes, flops and bytes are expressions over these names.
axes:
  M: rows
  N: columns

tensors:
  - {name: x, role: input, dtype: f32, shape: [M, N], doc: values}
  - {name: w, role: input, dtype: f32, shape: [N], doc: factor of each column}
  - {name: r, role: input, dtype: f32, shape: [M, N], doc: residual}
  - {name: y, role: output, dtype: f32, shape: [M, N], doc: result}

# The shapes that count: the score is the geometric mean over all of them.
workloads:
  - {id: small, M: 64, N: 256}
  - {id: tall, M: 4096, N: 64}
  - {id: odd, M: 301, N: 1003}
  - {id: large, M: 1024, N: 1024}

# Random inputs, which are what is timed.
inputs: {x: {bell: 1}, w: {uniform: [0.5, 1.5]}, r: {bell: 1}}

# Inputs that catch a shortcut; `reason` says which. They are checked, not timed.
hard:
  - name: large
    reason: half-width intermediates overflow
    inputs: {x: {bell: 1.0e+15}, r: {bell: 1.0e+15}}
  - name: small
    reason: half-width intermediates vanish
    inputs: {x: {bell: 1.0e-15}, r: {bell: 1.0e-15}}
  - name: no-residual
    reason: the product alone must be right
    inputs: {r: {constant: 0}}
  - name: tails
    reason: only the last column of each row is far from zero (see hone_inputs)

# The largest error over the largest |reference|; docs/contract.md lists the metrics.
gate: {metric: rel_max, limit: 0.000001}

baselines:
  - {name: plain, source: baseline}

flops: 2 * M * N
bytes: 4 * (3 * M * N + N)
memory: 256MiB

notes: |
  `y[i][j] = x[i][j] * w[j] + r[i][j]`. What stands here is shown to whoever writes a candidate.
)";

constexpr const char* kTaskCpp = R"(// Trusted code: hard inputs and the oracle. It shares nothing with the baseline, and works in float64.
#include <hone/task.h>

#include <string_view>

void hone_inputs(const hone::TaskCall* call) {
  if (std::string_view(call->input_set) != "tails") return;
  auto* x = call->data<float>("x");
  const std::int64_t rows = call->axis("M"), columns = call->axis("N");
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j + 1 < columns; ++j) x[i * columns + j] *= 0.001f;
}

void hone_oracle(const hone::TaskCall* call) {
  const auto* x = call->data<float>("x");
  const auto* w = call->data<float>("w");
  const auto* r = call->data<float>("r");
  double* y = call->tensor("y").reference;
  const std::int64_t rows = call->axis("M"), columns = call->axis("N");
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t at = i * columns + j;
      y[at] = static_cast<double>(x[at]) * static_cast<double>(w[j]) + static_cast<double>(r[at]);
    }
}
)";

constexpr const char* kKernelCpp = R"(// The baseline: a kernel program like any candidate.
#include <hone/kernel.h>

void scaled_residual(const hone::Block& block, const float* x, const float* w, const float* r, float* y,
                     std::int64_t rows, std::int64_t columns, std::int64_t rows_per_block) {
  const std::int64_t begin = block.index.x * rows_per_block;
  const std::int64_t end = begin + rows_per_block < rows ? begin + rows_per_block : rows;
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t j = 0; j < columns; ++j) y[i * columns + j] = x[i * columns + j] * w[j] + r[i * columns + j];
}
)";

constexpr const char* kPlanCpp = R"(#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const std::int64_t rows = problem.axis("M"), columns = problem.axis("N"), rows_per_block = 16;
  plan.launch(plan.module("kernel.cpp"), "scaled_residual", {hone::ceil_div(rows, rows_per_block)})
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("r"), problem.tensor("y"), rows, columns, rows_per_block);
}
)";

}  // namespace

const std::map<std::string, std::string>& task_skeleton() {
  static const std::map<std::string, std::string> files = {
      {"task.yaml", kTaskYaml}, {"task.cpp", kTaskCpp}, {"baseline/kernel.cpp", kKernelCpp}, {"baseline/plan.cpp", kPlanCpp}};
  return files;
}

}  // namespace hone::cli
