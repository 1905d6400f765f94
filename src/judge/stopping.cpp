#include "judge/stopping.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Standard deviations beyond the band that end a measurement early, and the epochs and precision
// that it needs besides: fewer epochs say too little about how processes differ.
constexpr double kDefiniteSigmas = 4.5;
constexpr std::uint32_t kDefiniteEpochs = 3;
constexpr double kDefiniteHalfwidth = 0.02;
// A 95% interval of a wide measurement is beyond the band by chance more often than one in a hundred;
// this many standard deviations from 1 are not (0.14%, two-sided).
constexpr double kDecisionSigmas = 3.2;

}  // namespace

std::string_view name_of(Stop stop) {
  switch (stop) {
    case Stop::no: return "running";
    case Stop::exact: return "sample count";
    case Stop::tight: return "interval tight";
    case Stop::definite: return "definite";
    case Stop::budget: return "time budget";
    case Stop::max_pairs: return "most samples";
  }
  return "?";
}

int next_look(int pairs) { return pairs + std::max(5, pairs / 3); }

double halfwidth(const Interval& interval) {
  return (interval.high - interval.low) / (interval.high + interval.low);
}

Stop judge_look(const StoppingPolicy& policy, int pairs, const Estimate& estimate, double elapsed_s, double round_s) {
  if (policy.exact && pairs >= *policy.exact) return Stop::exact;
  if (elapsed_s + round_s > policy.budget_s) return Stop::budget;
  if (policy.exact) return Stop::no;
  if (pairs >= policy.max_pairs) return Stop::max_pairs;
  if (pairs < policy.min_pairs || estimate.replicates.empty() || estimate.epochs < kDefiniteEpochs) return Stop::no;
  const double width = halfwidth(ratio_interval(estimate, 0.95));
  if (width <= policy.target_halfwidth) return Stop::tight;
  const double band = std::log1p(policy.min_effect);
  if (width <= kDefiniteHalfwidth && std::abs(estimate.x) - band > kDefiniteSigmas * estimate.sd) return Stop::definite;
  return Stop::no;
}

Decision decide(const Estimate& estimate, double min_effect) {
  const Interval interval = ratio_interval(estimate, 0.95);
  const double strict = kDecisionSigmas * estimate.sd;
  if (interval.low > 1 + min_effect && estimate.x - strict > 0) return Decision::keep;
  if (interval.high < 1 - min_effect && estimate.x + strict < 0) return Decision::reject;
  return Decision::ambiguous;
}

}  // namespace hone
