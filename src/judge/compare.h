// One output against what it must be, by the gate of its contract.
//
// Every comparison is written so that NaN fails it: `not (error <= limit)`, and non-finite elements
// are counted before any metric is formed. Only rows of the valid regions are looked at.
#ifndef HONE_JUDGE_COMPARE_H
#define HONE_JUDGE_COMPARE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/task.h"
#include "device/data.h"

namespace hone {

// Rows of a tensor as float64. The last dimension is the row; those before it are flattened. A tensor
// of rank 0 or 1 is one row.
class Rows {
 public:
  // In memory, laid out as `shape` says.
  Rows(const TensorShape& shape, std::span<const std::byte> bytes);
  // Dense row-major float64, as the oracle makes it. Values beyond the dtype's range count as the
  // infinity that a correctly rounded result is.
  Rows(const TensorShape& shape, std::span<const double> dense);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  void read(std::int64_t row, double* out) const;
  // Of an element, in bytes from the tensor's start.
  std::size_t offset(std::int64_t row, std::int64_t column) const;

 private:
  const TensorShape* shape_;
  std::span<const std::byte> bytes_;
  std::span<const double> dense_;
  std::int64_t rows_ = 1, columns_ = 1;
  double largest_ = 0;   // finite value of the dtype
};

// An element in the contract's terms: region, row within the region, column.
struct Element {
  std::string region;
  std::int64_t row = 0, column = 0;
  std::int64_t tensor_row = 0;
  double got = 0, expected = 0;
};
std::string to_text(const Element& element);    // "(group 3, row 16, column 0)"

struct Comparison {
  std::string tensor, metric;
  double value = 0, limit = 0;                   // of the worst region; +Inf when nothing can be measured
  std::string region;                            // the worst one
  std::int64_t elements = 0;                     // valid
  std::int64_t not_written = 0, non_finite = 0, wrong = 0;
  std::optional<Element> first_not_written, first_non_finite, first_wrong;
  double largest_reference = 0, largest_error = 0;
  bool constant = true, reference_constant = true;   // all valid elements are equal (only with a poison test)

  bool passed() const { return not_written == 0 && non_finite == 0 && value <= limit; }
  // The refusal, most telling fact first: not written, non-finite, wrong.
  std::optional<Error> error() const;
};

// Whether the element at this byte offset still holds the poison.
using PoisonTest = std::function<bool(std::size_t offset)>;

// Two tensors of one shape, wherever they lie: what a comparison asks about them (device/data.h).
class Pair {
 public:
  virtual ~Pair() = default;
  virtual Result<std::vector<RegionSums>> sums(const std::vector<Region>& regions, const SumsRequest& request) = 0;
  virtual Result<OddElements> odd(const Region& region, const Tolerance& tolerance) = 0;
};

// In this process's memory.
class HostPair final : public Pair {
 public:
  HostPair(const Rows& actual, const Rows& expected, PoisonTest is_poison = {})
      : actual_(actual), expected_(expected), is_poison_(std::move(is_poison)) {}
  Result<std::vector<RegionSums>> sums(const std::vector<Region>& regions, const SumsRequest& request) override;
  Result<OddElements> odd(const Region& region, const Tolerance& tolerance) override;

 private:
  const Rows &actual_, &expected_;
  PoisonTest is_poison_;
};

// `regions` empty: one region, "all". With `poison` every valid element is also tested for having been written: it was
// not when it holds poison and is wrong (a right value may look like poison).
Result<Comparison> compare(const Gate& gate, const TensorShape& shape, const std::vector<Region>& regions, Pair& pair,
                           bool poison = false);

// The gate for two outputs that each may differ from the reference by `gate`: by the triangle
// inequality they differ by at most twice its limit (four times for rel_energy, which is a square).
Gate between_outputs(const Gate& gate);

}  // namespace hone

#endif
