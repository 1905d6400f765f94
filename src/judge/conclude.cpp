#include "judge/conclude.h"

#include <cmath>

#include "judge/stopping.h"

namespace hone {
namespace {

// Of one side's ratios, over all workloads or not at all.
struct Mean {
  std::optional<double> geomean;
  std::optional<Estimate> estimate;
};

Mean mean_of(const std::vector<WorkloadOutcome>& outcomes, std::optional<double> WorkloadReport::*ratio,
             std::optional<Estimate> WorkloadOutcome::*estimate) {
  double sum = 0;
  std::vector<Estimate> estimates;
  for (const WorkloadOutcome& outcome : outcomes) {
    if (!(outcome.report.*ratio)) return {};
    sum += std::log(*(outcome.report.*ratio));
    if (outcome.*estimate) estimates.push_back(*(outcome.*estimate));
  }
  Mean out;
  out.geomean = std::exp(sum / static_cast<double>(outcomes.size()));
  if (estimates.size() == outcomes.size()) out.estimate = combine(estimates);
  return out;
}

}  // namespace

void conclude(const std::vector<WorkloadOutcome>& outcomes, double min_effect, bool incumbent, bool decides, Report& report) {
  if (outcomes.empty() || report.passed != report.total || report.total != report.of_task) return;
  const Mean baseline = mean_of(outcomes, &WorkloadReport::ratio, &WorkloadOutcome::ratio);
  const Mean against = incumbent ? mean_of(outcomes, &WorkloadReport::incumbent_ratio, &WorkloadOutcome::incumbent_ratio) : Mean{};
  report.geomean = baseline.geomean;
  report.incumbent_geomean = against.geomean;
  if (baseline.estimate) report.geomean_ci = ratio_interval(*baseline.estimate, 0.95);
  if (against.estimate) report.incumbent_geomean_ci = ratio_interval(*against.estimate, 0.95);
  const std::optional<Estimate>& deciding = incumbent ? against.estimate : baseline.estimate;
  if (decides && deciding) report.decision = decide(*deciding, min_effect);
}

}  // namespace hone
