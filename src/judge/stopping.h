// When to stop measuring, and what an interval decides.
//
// Looking at the data again and again and stopping at the first good look would turn noise into
// decisions. So there are two bars: the end of the measurement (tight enough, or out of budget) is
// decided by the 95% interval; stopping before that asks for far more than the 95% interval. Both
// keep a band of +-min_effect around 1 that is never KEEP or REJECT.
#ifndef HONE_JUDGE_STOPPING_H
#define HONE_JUDGE_STOPPING_H

#include <optional>
#include <string>

#include "judge/report.h"
#include "judge/statistics.h"

namespace hone {

struct StoppingPolicy {
  int min_pairs = 15, max_pairs = 4000;
  double target_halfwidth = 0.003;     // relative, of the 95% interval
  double min_effect = 0.002;
  double budget_s = 10;                // from the first pair
  std::optional<int> exact;            // this many pairs, whatever the interval says
};

enum class Stop { no, exact, tight, definite, budget, max_pairs };
std::string_view name_of(Stop stop);

// Pairs after which to look at the interval next: looks grow apart, so that there are few of them.
int next_look(int pairs);

// To be asked after each look. `elapsed_s` is the time since the first pair, `round_s` what one more
// round takes.
Stop judge_look(const StoppingPolicy& policy, int pairs, const Estimate& estimate, double elapsed_s, double round_s);

// (high - low) / 2 relative to the middle.
double halfwidth(const Interval& interval);

// KEEP when the whole 95% interval lies above 1 + min_effect and the estimate 3.2 standard deviations
// above 1; REJECT on the other side; else AMBIGUOUS.
Decision decide(const Estimate& estimate, double min_effect);

}  // namespace hone

#endif
