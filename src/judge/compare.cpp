#include "judge/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "contract/numeric.h"
#include "hone/types.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double quotient(double error, double size) {
  if (error == 0) return 0;
  return size > 0 ? error / size : kInfinity;
}

double metric_value(const Gate& gate, const RegionSums& sums, double scale) {
  if (gate.metric == "rel_energy") return quotient(sums.error2, sums.got2 + sums.expected2);
  if (gate.metric == "rel_l2") return std::sqrt(quotient(sums.error2, sums.expected2));
  if (gate.metric == "rel_max") return quotient(sums.max_error, sums.max_expected);
  if (gate.metric == "row_rel_l2") return sums.worst_row;
  if (gate.metric == "bound") return sums.worst_bound;
  if (gate.metric == "abs") return sums.max_error * scale;
  return kInfinity;
}

// `bound` is compared with 1; its limit is the relative part.
double limit_of(const Gate& gate) { return gate.metric == "bound" ? 1 : gate.limit; }

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f32: return std::numeric_limits<float>::max();
    case DType::bf16: return 0x1.fep127;
    case DType::f16: return 65504;
    case DType::e4m3: return 448;
    case DType::e5m2: return 57344;
    default: return std::numeric_limits<double>::max();
  }
}

// Largest value that still rounds to the largest finite one is half a unit above it; beyond that a
// right result is infinite.
bool overflows(DType dtype, double value, double largest) {
  if (!(std::abs(value) > largest)) return false;
  std::byte bytes[8];
  store_element(dtype, value, bytes);
  return !std::isfinite(load_element(dtype, bytes));
}

bool same_special(double a, double b) {
  if (std::isnan(b)) return std::isnan(a);
  return a == b;                                   // infinities of one sign
}

// An error of one element that is surely no rounding: used to name the first wrong element and to
// tell an unwritten element from one that looks like poison by chance.
Tolerance element_tolerance(const Gate& gate, double rms) {
  if (gate.metric == "abs") return {.absolute = gate.limit};
  if (gate.metric == "bound") return {.absolute = gate.abs_floor, .relative = gate.limit};
  return {.absolute = (gate.metric == "rel_energy" ? std::sqrt(gate.limit) : gate.limit) * rms};
}

}  // namespace

Rows::Rows(const TensorShape& shape, std::span<const std::byte> bytes) : shape_(&shape), bytes_(bytes) {
  for (std::size_t i = 0; i + 1 < shape.shape.size(); ++i) rows_ *= shape.shape[i];
  if (!shape.shape.empty()) columns_ = shape.shape.back();
}

Rows::Rows(const TensorShape& shape, std::span<const double> dense) : Rows(shape, std::span<const std::byte>{}) {
  dense_ = dense;
  largest_ = largest_finite(shape.dtype);
}

std::size_t Rows::offset(std::int64_t row, std::int64_t column) const {
  std::int64_t at = shape_->shape.empty() ? 0 : column * shape_->strides.back();
  for (std::size_t i = shape_->shape.size(); i-- > 1;) {
    at += row % shape_->shape[i - 1] * shape_->strides[i - 1];
    row /= shape_->shape[i - 1];
  }
  return static_cast<std::size_t>(at) * size_of(shape_->dtype);
}

void Rows::read(std::int64_t row, double* out) const {
  const auto columns = static_cast<std::size_t>(columns_);
  if (bytes_.empty()) {
    std::copy_n(dense_.begin() + row * columns_, columns, out);
    for (std::size_t i = 0; i < columns; ++i)
      if (overflows(shape_->dtype, out[i], largest_)) out[i] = std::copysign(kInfinity, out[i]);
    return;
  }
  const std::byte* at = bytes_.data() + offset(row, 0);
  const std::size_t step = (shape_->shape.empty() ? 1 : static_cast<std::size_t>(shape_->strides.back())) * size_of(shape_->dtype);
  switch (shape_->dtype) {
    case DType::f32:
      for (std::size_t i = 0; i < columns; ++i, at += step) {
        float value;
        std::memcpy(&value, at, sizeof value);
        out[i] = static_cast<double>(value);
      }
      return;
    case DType::bf16:
      for (std::size_t i = 0; i < columns; ++i, at += step) {
        bf16 value;
        std::memcpy(&value, at, sizeof value);
        out[i] = static_cast<double>(to_float(value));
      }
      return;
    default:
      for (std::size_t i = 0; i < columns; ++i, at += step) out[i] = load_element(shape_->dtype, at);
  }
}

std::string to_text(const Element& element) {
  return fmt::format("({}, row {}, column {})", element.region, element.row, element.column);
}

Result<std::vector<RegionSums>> HostPair::sums(const std::vector<Region>& regions, const SumsRequest& request) {
  const bool bound = request.bound_floor != 0 || request.bound_limit != 0;
  const double inverse = 1 / request.scale;
  std::vector<double> got(static_cast<std::size_t>(actual_.columns())), want(got.size());
  std::vector<RegionSums> all;
  for (const Region& region : regions) {
    RegionSums out;
    for (std::int64_t row = region.begin; row < region.end; ++row) {
      actual_.read(row, got.data());
      expected_.read(row, want.data());
      double row_error2 = 0, row_expected2 = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (!std::isfinite(want[i]) || !std::isfinite(got[i])) {   // judged element by element
          ++out.special;
          continue;
        }
        const double x = got[i] * inverse, y = want[i] * inverse, d = x - y;
        row_error2 += d * d;
        row_expected2 += y * y;
        out.got2 += x * x;
        out.max_error = std::max(out.max_error, std::abs(d));
        out.max_expected = std::max(out.max_expected, std::abs(y));
        out.max_got = std::max(out.max_got, std::abs(x));
        if (bound)
          out.worst_bound = std::max(out.worst_bound, quotient(std::abs(d) * request.scale, request.bound_floor + request.bound_limit * std::abs(want[i])));
      }
      out.error2 += row_error2;
      out.expected2 += row_expected2;
      out.worst_row = std::max(out.worst_row, std::sqrt(quotient(row_error2, row_expected2)));
    }
    all.push_back(out);
  }
  return all;
}

Result<OddElements> HostPair::odd(const Region& region, const Tolerance& tolerance) {
  std::vector<double> got_row(static_cast<std::size_t>(actual_.columns())), want_row(got_row.size());
  OddElements out;
  for (std::int64_t row = region.begin; row < region.end; ++row) {
    actual_.read(row, got_row.data());
    expected_.read(row, want_row.data());
    if (row == region.begin && !got_row.empty()) out.first_got = got_row[0], out.first_expected = want_row[0];
    for (std::size_t i = 0; i < got_row.size(); ++i) {
      const double got = got_row[i], want = want_row[i];
      out.constant = out.constant && got == out.first_got;
      out.expected_constant = out.expected_constant && want == out.first_expected;
      const bool special = !std::isfinite(got) || !std::isfinite(want);
      if (!special && !tolerance.finite_too) continue;
      const bool right = special ? same_special(got, want)
                                 : std::abs(got - want) <= std::max(0x1p-6 * std::abs(want), tolerance.absolute + tolerance.relative * std::abs(want));
      if (right) continue;
      const auto column = static_cast<std::int64_t>(i);
      const auto count = [&](std::int64_t& counter, std::optional<OddElement>& first) {
        if (counter++ == 0) first = OddElement{row, column, got, want};
      };
      if (tolerance.poison && is_poison_(actual_.offset(row, column))) {
        count(out.not_written, out.first_not_written);
      } else if (!std::isfinite(got) && std::isfinite(want)) {
        count(out.non_finite, out.first_non_finite);
      } else {
        count(out.wrong, out.first_wrong);
        if (special) ++out.special;
      }
    }
  }
  return out;
}

Result<Comparison> compare(const Gate& gate, const TensorShape& shape, const std::vector<Region>& regions, Pair& pair, bool poison) {
  Comparison out;
  out.tensor = shape.name;
  out.metric = gate.metric;
  out.limit = limit_of(gate);
  const std::int64_t columns = shape.shape.empty() ? 1 : shape.shape.back();
  std::vector<Region> valid = regions;
  if (valid.empty()) valid = {{"all", 0, shape.elements() / columns}};
  std::erase_if(valid, [](const Region& region) { return region.begin >= region.end; });
  SumsRequest request;
  if (gate.metric == "bound") request.bound_floor = gate.abs_floor, request.bound_limit = gate.limit;
  HONE_TRY(const std::vector<RegionSums> plain, pair.sums(valid, request));

  std::optional<double> first_got, first_expected;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const Region& region = valid[i];
    RegionSums sums = plain[i];
    double scale = 1;
    const double largest = std::max(sums.max_expected, sums.max_got);
    if (largest > 0 && (largest > 1e150 || largest < 1e-140)) {
      SumsRequest scaled = request;
      scaled.scale = scale = largest;
      HONE_TRY(const std::vector<RegionSums> again, pair.sums({region}, scaled));
      sums = again.front();
    }
    const double value = metric_value(gate, sums, scale);
    if (out.region.empty() || !(value <= out.value)) {
      out.value = value;
      out.region = region.name;
    }
    out.largest_reference = std::max(out.largest_reference, sums.max_expected * scale);
    out.largest_error = std::max(out.largest_error, sums.max_error * scale);

    const std::int64_t cells = (region.end - region.begin) * columns;
    out.elements += cells;
    const bool suspect = poison || !(value <= out.limit);
    if (!suspect && sums.special == 0) {
      out.constant = out.reference_constant = false;   // not looked at
      continue;
    }
    const double rms = std::sqrt(sums.expected2 / std::max(1.0, static_cast<double>(cells))) * scale;
    Tolerance tolerance = element_tolerance(gate, rms);
    tolerance.finite_too = suspect;
    tolerance.poison = poison;
    HONE_TRY(const OddElements odd, pair.odd(region, tolerance));
    if (!first_got) first_got = odd.first_got, first_expected = odd.first_expected;
    out.constant = out.constant && odd.constant && odd.first_got == *first_got;
    out.reference_constant = out.reference_constant && odd.expected_constant && odd.first_expected == *first_expected;
    const auto count = [&](std::int64_t& counter, std::optional<Element>& first, std::int64_t more, const std::optional<OddElement>& at) {
      if (counter == 0 && at) first = Element{region.name, at->row - region.begin, at->column, at->row, at->got, at->expected};
      counter += more;
    };
    count(out.not_written, out.first_not_written, odd.not_written, odd.first_not_written);
    count(out.non_finite, out.first_non_finite, odd.non_finite, odd.first_non_finite);
    count(out.wrong, out.first_wrong, odd.wrong, odd.first_wrong);
    if (odd.special > 0) out.value = kInfinity, out.region = region.name;   // finite where it must not be
  }
  return out;
}

std::optional<Error> Comparison::error() const {
  if (passed()) return std::nullopt;
  const auto number = [](double x) { return fmt::format("{:.4g}", x); };
  const auto wrong_text = [&] {
    std::string text = fmt::format("{}: {} is {} in region {}, above the gate's limit {}", tensor, metric,
                                   std::isfinite(value) ? number(value) : "without bound", region, number(limit));
    if (first_wrong)
      text += fmt::format("; {} of {} elements are clearly wrong, first at {}: got {}, reference {}", wrong, elements,
                          to_text(*first_wrong), number(first_wrong->got), number(first_wrong->expected));
    return text;
  };
  Error out;
  if (not_written > 0) {
    out = make_error(ErrorKind::not_written, "{}: output not written: {} of {} valid elements are untouched, first at {}",
                     tensor, not_written, elements, to_text(*first_not_written));
  } else if (non_finite > 0) {
    out = make_error(ErrorKind::non_finite, "{}: non-finite: {} of {} elements are NaN or Inf where the reference is finite, first at {}: got {}, reference {}",
                     tensor, non_finite, elements, to_text(*first_non_finite), number(first_non_finite->got), number(first_non_finite->expected));
  } else {
    out = make_error(ErrorKind::wrong_result, "{}", wrong_text());
  }
  if (out.kind != ErrorKind::wrong_result && wrong > 0) out.notes.push_back(wrong_text());
  if (constant && !reference_constant && out.kind == ErrorKind::wrong_result)
    out.notes.push_back(fmt::format("every element is {}: a trivial output", number(first_wrong ? first_wrong->got : 0)));
  return out;
}

Gate between_outputs(const Gate& gate) {
  Gate out = gate;
  const double limit = gate.limit;
  if (gate.metric == "abs") {
    out.limit = 2 * limit;
  } else if (gate.metric == "rel_energy") {
    // The square root is a norm; its denominator may shrink by the errors themselves.
    const double root = std::min(std::sqrt(limit), 0.25);
    out.limit = 4 * limit / ((1 - 2 * root) * (1 - 2 * root));
  } else if (limit < 1) {
    // Relative to an output instead of the reference: |y| <= (|b| + a) / (1 - r).
    out.limit = 2 * limit / (1 - limit);
    out.abs_floor = 2 * gate.abs_floor / (1 - limit);
  } else {
    out.limit = kInfinity;
  }
  return out;
}

}  // namespace hone
