// What a plan is made for: one workload's shapes and a candidate's parameter values, no data.
#ifndef HONE_PROGRAM_PROBLEM_H
#define HONE_PROGRAM_PROBLEM_H

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hone/dtype.h"

namespace hone {

enum class TensorRole { input, output, persistent };   // persistent: read and written, restored before each call
std::string_view name_of(TensorRole role);

// Shapes and strides in elements, alignment in bytes.
struct TensorShape {
  std::string name;
  DType dtype = DType::f32;
  TensorRole role = TensorRole::input;
  std::vector<std::int64_t> shape, strides;
  std::int64_t alignment = 64;

  std::int64_t elements() const;        // of the logical tensor
  std::int64_t span_elements() const;   // from the first element to one past the last, strides counted
  std::size_t bytes() const { return static_cast<std::size_t>(span_elements()) * size_of(dtype); }
  bool dense() const;                   // strides are row-major without gaps
  // The same elements with `axes` axes left: leading ones are taken as one. None: gaps between them, or fewer axes than that.
  std::optional<TensorShape> flattened(std::size_t axes) const;
};

// Parameter values by name, as text: what a plan sees as problem.param(name).
using Parameters = std::map<std::string, std::string>;

struct ProblemShape {
  std::string workload;
  std::string device;                   // architecture: "cpu", "sm_90a"
  std::int64_t workers = 1;
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::vector<TensorShape> tensors;
};

}  // namespace hone

#endif
