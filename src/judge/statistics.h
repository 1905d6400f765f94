// Statistics of paired timings. Everything works on x = ln(baseline / candidate), so that a ratio
// and its inverse are treated alike, and is bounded: never NaN or Inf from finite, positive times.
#ifndef HONE_JUDGE_STATISTICS_H
#define HONE_JUDGE_STATISTICS_H

#include <cstdint>
#include <vector>

#include "judge/report.h"

namespace hone {

// Pairs in the order of measurement. An epoch has two loads of the programs, in either order: calls
// within it share memory placement, so they are not independent evidence.
struct Series {
  std::vector<double> x;
  std::vector<std::uint32_t> epoch;    // by pair: 0, 0, ..., 1, 1, ... rising without gaps
};

double median(std::vector<double> values);               // of at least one value
// The mean of the middle half: as robust as it must be, and better than the median at averaging out
// the small symmetric noise that remains between paired calls.
double interquartile_mean(std::vector<double> values);   // of at least one value

// Two processes with the same code differ by about this much in ln(time): page placement, address
// bits. It is assumed, not estimated, because few epochs cannot show it (docs/judge.md).
inline constexpr double kProcessSpread = 0.0015;
inline constexpr int kReplicates = 2000;

// Location of a series and its bootstrap replicates: of pairs, or of whole epochs where these vary
// more than their pairs explain; plus the process spread.
struct Estimate {
  double x = 0;
  double sd = 0;                       // of the replicates
  std::uint32_t epochs = 0;
  std::vector<double> replicates;      // in drawing order: element i of several workloads combine
};
Estimate estimate(const Series& series, std::uint64_t seed, int replicates = kReplicates);

// The bootstrap percentile interval of exp(x), at `confidence` (0.95). Holds exp(x) always.
Interval ratio_interval(const Estimate& estimate, double confidence);
// The geometric mean over workloads: the mean of their x, replicate by replicate.
Estimate combine(const std::vector<Estimate>& workloads);

}  // namespace hone

#endif
