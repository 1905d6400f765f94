#include "judge/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "judge/stopping.h"

namespace hone {
namespace {

// Heavy-tailed call noise, processes that differ, and a machine that drifts under both.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}
  void new_process() { process_b_ = 0.0015 * normal(), process_c_ = 0.0015 * normal(); }
  // ln(baseline / candidate) of one pair; the candidate is slower by `effect`.
  double pair(double effect) { return std::log(time(1, process_b_) / time(1 + effect, process_c_)); }

 private:
  double normal() { return normal_(random_); }
  double time(double base, double process) {
    double value = base * std::exp(process + 0.02 * normal());
    if (uniform_(random_) < 0.05) value += 0.5 * exponential_(random_);
    return value;
  }
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::exponential_distribution<double> exponential_;
  double process_b_ = 0, process_c_ = 0;
};

struct Measured {
  Estimate estimate;
  Stop stop = Stop::no;
  int pairs = 0;
};

Measured measure(std::uint64_t seed, double effect, int most) {
  Noise noise(seed);
  StoppingPolicy policy;
  policy.max_pairs = most;
  policy.budget_s = 1e9;
  Series series;
  Measured out;
  int look = policy.min_pairs;
  for (int n = 1; out.stop == Stop::no; ++n) {
    const auto epoch = static_cast<std::uint32_t>((n - 1) / 20);
    if ((n - 1) % 20 == 0) noise.new_process();
    series.x.push_back(noise.pair(effect));
    series.epoch.push_back(epoch);
    if (n < look && n < most) continue;
    out.estimate = estimate(series, seed, 300);
    out.stop = judge_look(policy, n, out.estimate, 0, 0);
    out.pairs = n;
    look = next_look(n);
  }
  return out;
}

TEST(Statistics, Locations) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(interquartile_mean({1}), 1);
  EXPECT_NEAR(interquartile_mean({1, 2, 3, 4, 5, 6, 7, 1e9}), 4.5, 1e-12);
  EXPECT_NEAR(interquartile_mean({0, 0, 3, 1e9}), 1.5, 1e-12);
}

TEST(Statistics, OneValueAndEqualValuesGiveFiniteIntervals) {
  for (const std::size_t n : {1u, 2u, 40u}) {
    Series series{std::vector<double>(n, 0.1), std::vector<std::uint32_t>(n, 0)};
    const Estimate found = estimate(series, 1);
    const Interval interval = ratio_interval(found, 0.95);
    EXPECT_TRUE(std::isfinite(interval.low) && std::isfinite(interval.high));
    EXPECT_LE(interval.low, std::exp(0.1));
    EXPECT_GE(interval.high, std::exp(0.1));
  }
}

TEST(Statistics, SameSeedSameInterval) {
  Noise noise(3);
  Series series;
  for (int i = 0; i < 50; ++i) series.x.push_back(noise.pair(0)), series.epoch.push_back(static_cast<std::uint32_t>(i / 10));
  const Interval a = ratio_interval(estimate(series, 9), 0.95), b = ratio_interval(estimate(series, 9), 0.95);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(Statistics, InverseRatiosGiveInverseIntervals) {
  Noise noise(4);
  Series series, inverse;
  for (int i = 0; i < 200; ++i) {
    series.x.push_back(noise.pair(0.05));
    inverse.x.push_back(-series.x.back());
    series.epoch.push_back(static_cast<std::uint32_t>(i / 20));
  }
  inverse.epoch = series.epoch;
  const Estimate a = estimate(series, 1), b = estimate(inverse, 2);
  EXPECT_NEAR(a.x, -b.x, 1e-12);
  EXPECT_NEAR(std::log(ratio_interval(a, 0.95).low), -std::log(ratio_interval(b, 0.95).high), 0.002);
}

// Pairs alone would call this tight: each process has a bias of its own.
TEST(Statistics, ProcessesThatDifferWidenTheInterval) {
  Series series;
  const double bias[] = {-0.02, 0.025, -0.015, 0.02};
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
    for (int i = 0; i < 100; ++i) series.x.push_back(bias[epoch] + 1e-4 * (i % 10)), series.epoch.push_back(epoch);
  const Interval interval = ratio_interval(estimate(series, 1), 0.95);
  EXPECT_LT(interval.low, 0.995);
  EXPECT_GT(interval.high, 1.005);
}

TEST(Stopping, TheSameProgramTwiceIsHardlyEverDecided) {
  int decided = 0, covered = 0;
  const int tries = 300;
  for (int i = 0; i < tries; ++i) {
    const Measured found = measure(static_cast<std::uint64_t>(1000 + i), 0, 120);
    if (decide(found.estimate, 0.002) != Decision::ambiguous) ++decided;
    const Interval interval = ratio_interval(found.estimate, 0.95);
    if (interval.low <= 1 && interval.high >= 1) ++covered;
  }
  EXPECT_LE(decided, 2);                      // < 1%
  EXPECT_GE(covered, tries * 92 / 100);
}

TEST(Stopping, OnePercentIsFoundAndTheEarlyEndIsRight) {
  int rejected = 0, kept = 0;
  const int tries = 60;
  for (int i = 0; i < tries; ++i) {
    const Measured found = measure(static_cast<std::uint64_t>(5000 + i), 0.01, 700);
    const Decision decision = decide(found.estimate, 0.002);
    if (decision == Decision::reject) ++rejected;
    if (decision == Decision::keep) ++kept;
    if (found.stop == Stop::definite) {
      EXPECT_EQ(decision, Decision::reject) << i;
    }
  }
  EXPECT_EQ(kept, 0);
  EXPECT_GE(rejected, tries * 95 / 100);
}

TEST(Stopping, ABigWinEndsEarly) {
  const Measured found = measure(1, -0.3, 4000);
  EXPECT_EQ(found.stop, Stop::definite);
  EXPECT_LT(found.pairs, 200);
  EXPECT_EQ(decide(found.estimate, 0.002), Decision::keep);
}

TEST(Stopping, Bounds) {
  StoppingPolicy policy;
  Estimate none;
  policy.budget_s = 1;
  EXPECT_EQ(judge_look(policy, 3, none, 0.5, 0.1), Stop::no);
  EXPECT_EQ(judge_look(policy, 3, none, 0.95, 0.1), Stop::budget);
  EXPECT_EQ(judge_look(policy, policy.max_pairs, none, 0, 0), Stop::max_pairs);
  policy.exact = 5;
  EXPECT_EQ(judge_look(policy, 4, none, 0, 0), Stop::no);
  EXPECT_EQ(judge_look(policy, 5, none, 0, 0), Stop::exact);
  for (int n = 1; n < 10000;) {
    const int next = next_look(n);
    ASSERT_GT(next, n);
    n = next;
  }
}

// Within the band around 1 nothing is a win, however sure.
TEST(Stopping, MinimumEffect) {
  Estimate sure;
  sure.sd = 1e-6;
  for (const auto& [x, decision] : {std::pair{std::log(1.0015), Decision::ambiguous}, {std::log(1.003), Decision::keep},
                                    {-std::log(1.0015), Decision::ambiguous}, {-std::log(1.003), Decision::reject}}) {
    sure.x = x;
    sure.replicates.assign(100, x);
    EXPECT_EQ(decide(sure, 0.002), decision) << x;
  }
}

TEST(Combine, IsTheGeometricMean) {
  Estimate a, b;
  a.x = std::log(4), b.x = std::log(1);
  a.replicates = {std::log(4), std::log(9)}, b.replicates = {0, 0};
  a.epochs = 3, b.epochs = 2;
  const Estimate both = combine({a, b});
  EXPECT_NEAR(std::exp(both.x), 2, 1e-12);
  EXPECT_NEAR(std::exp(both.replicates[1]), 3, 1e-12);
  EXPECT_EQ(both.epochs, 2u);
}

}  // namespace
}  // namespace hone
