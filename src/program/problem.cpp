#include "program/problem.h"

namespace hone {

std::string_view name_of(TensorRole role) {
  switch (role) {
    case TensorRole::input: return "input";
    case TensorRole::output: return "output";
    case TensorRole::persistent: return "persistent";
  }
  return "?";
}

std::int64_t TensorShape::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::int64_t TensorShape::span_elements() const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

bool TensorShape::dense() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

std::optional<TensorShape> TensorShape::flattened(std::size_t axes) const {
  if (axes == 0 || axes > shape.size()) return std::nullopt;
  TensorShape out = *this;
  while (out.shape.size() > axes) {
    if (out.shape[0] != 1 && out.strides[0] != out.shape[1] * out.strides[1]) return std::nullopt;
    out.shape[1] *= out.shape[0];
    out.shape.erase(out.shape.begin());
    out.strides.erase(out.strides.begin());
  }
  return out;
}

}  // namespace hone
