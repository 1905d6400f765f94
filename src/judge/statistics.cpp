#include "judge/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone {
namespace {

// splitmix64: small, seeded, the same on every machine (std distributions are not).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(((next() >> 32) * limit) >> 32); }
  double unit() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(unit())) * std::cos(6.283185307179586 * unit()); }

 private:
  std::uint64_t state_;
};

// The interquartile mean of sorted values that occur `weight` times each; half-covered values at the
// quartiles count in part.
double weighted_interquartile_mean(const std::vector<double>& sorted, const std::vector<std::uint32_t>& weight,
                                   double total) {
  const double low = total / 4, high = total - low;
  double seen = 0, sum = 0;
  for (std::size_t i = 0; i < sorted.size() && seen < high; ++i) {
    const double next = seen + weight[i];
    const double inside = std::min(next, high) - std::max(seen, low);
    if (inside > 0) sum += inside * sorted[i];
    seen = next;
  }
  return sum / (high - low);
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double interquartile_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return weighted_interquartile_mean(values, std::vector<std::uint32_t>(values.size(), 1),
                                     static_cast<double>(values.size()));
}

Estimate estimate(const Series& series, std::uint64_t seed, int replicates) {
  const std::size_t n = series.x.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return series.x[a] < series.x[b]; });
  std::vector<double> sorted(n);
  for (std::size_t i = 0; i < n; ++i) sorted[i] = series.x[order[i]];

  Estimate out;
  out.epochs = series.epoch.back() + 1;
  std::vector<std::uint32_t> weight(n, 1);
  out.x = weighted_interquartile_mean(sorted, weight, static_cast<double>(n));

  Random random(seed);
  std::vector<double> by_pair, by_epoch;
  by_pair.reserve(static_cast<std::size_t>(replicates));
  for (int r = 0; r < replicates; ++r) {
    std::fill(weight.begin(), weight.end(), 0);
    for (std::size_t i = 0; i < n; ++i) ++weight[random.below(n)];
    by_pair.push_back(weighted_interquartile_mean(sorted, weight, static_cast<double>(n)));
  }
  if (out.epochs >= 2) {
    std::vector<std::uint32_t> drawn(out.epochs);
    // Resampled means of J values spread by sqrt((J-1)/J) too little.
    const double widen = std::sqrt(static_cast<double>(out.epochs) / (out.epochs - 1));
    by_epoch.reserve(static_cast<std::size_t>(replicates));
    for (int r = 0; r < replicates; ++r) {
      std::fill(drawn.begin(), drawn.end(), 0);
      for (std::uint32_t e = 0; e < out.epochs; ++e) ++drawn[random.below(out.epochs)];
      double total = 0;
      for (std::size_t i = 0; i < n; ++i) total += weight[i] = drawn[series.epoch[order[i]]];
      by_epoch.push_back(out.x + widen * (weighted_interquartile_mean(sorted, weight, total) - out.x));
    }
  }
  out.replicates = deviation(by_epoch) > deviation(by_pair) ? std::move(by_epoch) : std::move(by_pair);
  const double process = kProcessSpread / std::sqrt(static_cast<double>(out.epochs));
  for (double& value : out.replicates) value += process * random.normal();
  out.sd = deviation(out.replicates);
  return out;
}

Interval ratio_interval(const Estimate& estimate, double confidence) {
  std::vector<double> sorted = estimate.replicates;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double quantile) {
    const double position = quantile * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  };
  const double tail = (1 - confidence) / 2;
  return {std::exp(std::min(at(tail), estimate.x)), std::exp(std::max(at(1 - tail), estimate.x))};
}

Estimate combine(const std::vector<Estimate>& workloads) {
  Estimate out;
  if (workloads.empty()) return out;
  out.epochs = workloads.front().epochs;
  std::size_t replicates = workloads.front().replicates.size();
  for (const Estimate& one : workloads) {
    replicates = std::min(replicates, one.replicates.size());
    out.epochs = std::min(out.epochs, one.epochs);
  }
  out.replicates.assign(replicates, 0);
  const double share = 1 / static_cast<double>(workloads.size());
  for (const Estimate& one : workloads) {
    out.x += share * one.x;
    for (std::size_t i = 0; i < replicates; ++i) out.replicates[i] += share * one.replicates[i];
  }
  out.sd = deviation(out.replicates);
  return out;
}

}  // namespace hone
