#include "judge/mutants.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "judge/compare.h"

namespace hone {
namespace {

class ValidRows {
 public:
  ValidRows(const TensorShape& shape, const std::vector<Region>& regions)
      : columns_(shape.shape.empty() ? 1 : shape.shape.back()),
        regions_(regions.empty() ? std::vector<Region>{{"all", 0, columns_ > 0 ? shape.elements() / columns_ : 0}} : regions) {}

  std::int64_t columns() const { return columns_; }
  const std::vector<Region>& regions() const { return regions_; }
  // Calls f(index) for every valid element.
  template <class F>
  void each(F&& f) const {
    for (const Region& region : regions_)
      for (std::int64_t i = region.begin * columns_; i < region.end * columns_; ++i) f(static_cast<std::size_t>(i));
  }

 private:
  std::int64_t columns_;
  std::vector<Region> regions_;
};

std::size_t index_of(const ValidRows& valid, std::int64_t row) { return static_cast<std::size_t>(row * valid.columns()); }

bool rows_differ(const ValidRows& valid, const std::vector<double>& values, std::int64_t a, std::int64_t b) {
  const auto columns = static_cast<std::ptrdiff_t>(valid.columns());
  const auto left = values.begin() + static_cast<std::ptrdiff_t>(index_of(valid, a));
  return !std::equal(left, left + columns, values.begin() + static_cast<std::ptrdiff_t>(index_of(valid, b)));
}

// Neighbouring rows of one region, as an index that slips by one would give; else elements of a row.
std::vector<double> swapped(const ValidRows& valid, std::vector<double> out) {
  for (const Region& region : valid.regions()) {
    for (std::int64_t row = region.begin; row + 1 < region.end; ++row) {
      if (!rows_differ(valid, out, row, row + 1)) continue;
      const auto first = out.begin() + static_cast<std::ptrdiff_t>(index_of(valid, row));
      std::swap_ranges(first, first + static_cast<std::ptrdiff_t>(valid.columns()), first + static_cast<std::ptrdiff_t>(valid.columns()));
      return out;
    }
  }
  return out;
}

// By as much as the region's largest value, in the region with the most elements: what a race leaves.
std::vector<double> one_off(const ValidRows& valid, std::vector<double> out) {
  const auto longest = std::max_element(valid.regions().begin(), valid.regions().end(), [](const Region& a, const Region& b) {
    return a.end - a.begin < b.end - b.begin;
  });
  if (longest == valid.regions().end() || longest->begin >= longest->end || valid.columns() == 0) return out;
  double largest = 0;
  for (std::size_t i = index_of(valid, longest->begin); i < index_of(valid, longest->end); ++i)
    if (std::isfinite(out[i])) largest = std::max(largest, std::abs(out[i]));
  const std::size_t middle = index_of(valid, longest->begin + (longest->end - longest->begin) / 2) + static_cast<std::size_t>(valid.columns() / 2);
  out[middle] += largest > 0 ? largest : 1;
  return out;
}

}  // namespace

std::vector<Mutant> mutants_of(const TensorShape& shape, const std::vector<Region>& regions, const std::vector<double>& reference,
                               const std::vector<HostTensor>& inputs) {
  const ValidRows valid(shape, regions);
  std::vector<Mutant> tried;
  tried.push_back({"zeros", std::vector<double>(reference.size(), 0)});
  double sum = 0, count = 0;
  valid.each([&](std::size_t i) {
    if (!std::isfinite(reference[i])) return;
    sum += reference[i];
    ++count;
  });
  tried.push_back({"constant (the mean)", std::vector<double>(reference.size(), count > 0 ? sum / count : 0)});
  tried.push_back({"one element off", one_off(valid, reference)});
  std::vector<double> larger = reference;
  for (double& value : larger) value *= 1.5;
  tried.push_back({"x1.5", std::move(larger)});
  tried.push_back({"two rows swapped", swapped(valid, reference)});
  for (const HostTensor& input : inputs) {
    if (input.shape.shape != shape.shape || reference.empty()) continue;
    const Rows rows(input.shape, std::span<const std::byte>(input.data, input.shape.bytes()));
    std::vector<double> copy(reference.size());
    for (std::int64_t row = 0; row < rows.rows(); ++row) rows.read(row, copy.data() + row * rows.columns());
    tried.push_back({"copy of " + input.shape.name, std::move(copy)});
  }
  std::vector<Mutant> out;
  for (Mutant& mutant : tried) {
    bool differs = false;
    valid.each([&](std::size_t i) { differs = differs || mutant.output[i] != reference[i]; });
    if (differs) out.push_back(std::move(mutant));
  }
  return out;
}

std::vector<InputMutation> input_mutations(const Task& task, const Workload& workload) {
  std::vector<InputMutation> out;
  for (const TensorShape& shape : workload.tensors) {
    if (shape.role != TensorRole::input || shape.shape.empty()) continue;
    if (task.scale_inputs.contains(shape.name)) {
      if (shape.elements() > 1) out.push_back({shape.name + ": stuck at its first value", shape.name});
    } else if (is_floating(shape.dtype) && shape.shape.back() >= 2) {
      out.push_back({shape.name + ": second half of each row repeats the first", shape.name});
    }
  }
  return out;
}

void apply(const InputMutation& mutation, const Task& task, const TensorShape& shape, std::byte* data) {
  const Rows rows(shape, std::span<const std::byte>(data, shape.bytes()));
  const std::size_t size = size_of(shape.dtype);
  const bool stuck = task.scale_inputs.contains(mutation.tensor);
  const std::int64_t half = rows.columns() / 2;
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    if (stuck)
      for (std::int64_t i = 0; i < rows.columns(); ++i) std::memmove(data + rows.offset(row, i), data + rows.offset(0, 0), size);
    else
      for (std::int64_t i = 0; i < half; ++i) std::memcpy(data + rows.offset(row, half + i), data + rows.offset(row, i), size);
  }
}

}  // namespace hone
