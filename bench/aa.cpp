// A/A: a copy of the baseline must not be called faster or slower. A slower twin must be found.
#include <algorithm>
#include <cmath>

#include "common.h"

namespace hone::bench {
namespace {

struct Tally {
  int keep = 0, reject = 0, ambiguous = 0, none = 0, covered = 0;
  std::vector<double> ratios, halfwidths, seconds, samples;
};

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Tally judge_often(const Task& task, const Candidate& candidate, Bench rooms, int tries, double budget_s, double truth) {
  Tally out;
  for (int i = 0; i < tries; ++i) {
    JudgeRequest request;
    request.candidate = candidate;
    request.time_budget_s = budget_s;
    request.cancel = &cli::interrupted();
    const double begin = now_s();
    const Report report = must(judge(task, request, rooms));
    if (report.cancelled) break;
    out.seconds.push_back(now_s() - begin);
    const WorkloadReport& workload = report.workloads.front();
    if (report.passed != 1) must<int>(fail(workload.error.value_or(make_error(ErrorKind::internal, "not passed"))));
    if (!report.decision) ++out.none;
    else if (*report.decision == Decision::keep) ++out.keep;
    else if (*report.decision == Decision::reject) ++out.reject;
    else ++out.ambiguous;
    out.ratios.push_back(*workload.ratio);
    out.samples.push_back(workload.samples);
    if (workload.ratio_ci) {
      if (workload.ratio_ci->low <= truth && truth <= workload.ratio_ci->high) ++out.covered;
      out.halfwidths.push_back((workload.ratio_ci->high - workload.ratio_ci->low) / 2);
    }
    if ((i + 1) % 10 == 0) fmt::print(stderr, "{}/{}: {} keep, {} reject, half-width {:.3f}%\n", i + 1, tries, out.keep, out.reject, 100 * middle(out.halfwidths));
  }
  return out;
}

nlohmann::json to_json(const Tally& tally) {
  const auto tries = static_cast<double>(tally.ratios.size());
  return {{"tries", tally.ratios.size()}, {"keep", tally.keep}, {"reject", tally.reject}, {"ambiguous", tally.ambiguous}, {"no_decision", tally.none},
          {"decided_share", tries > 0 ? (tally.keep + tally.reject) / tries : 0}, {"interval_holds_truth_share", tries > 0 ? tally.covered / tries : 0},
          {"median_ratio", middle(tally.ratios)}, {"median_halfwidth", middle(tally.halfwidths)}, {"median_seconds", middle(tally.seconds)},
          {"most_seconds", tally.seconds.empty() ? 0 : *std::max_element(tally.seconds.begin(), tally.seconds.end())},
          {"median_samples", middle(tally.samples)}, {"ratios", tally.ratios}};
}

int run(int argc, char** argv) {
  CLI::App app("How often a copy of the baseline is called faster or slower, and a slower twin found.");
  int tries = 300, slow = 100, permille = 10;
  double budget = 8, aa_budget = 2;
  std::string device = "cpu", workload = "millisecond";
  app.add_option("--device", device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  app.add_option("--slower", permille, "by how many thousandths the twin is slower")->check(CLI::IsMember({5, 10, 20, 50}))->capture_default_str();
  app.add_option("--tries", tries, "A/A comparisons")->capture_default_str();
  app.add_option("--slow", slow, "comparisons with the slower twin")->capture_default_str();
  app.add_option("--budget", budget, "seconds for one comparison with the slower twin")->capture_default_str();
  app.add_option("--aa-budget", aa_budget, "seconds for one A/A comparison")->capture_default_str();
  app.add_option("--workload", workload, "of tasks/steady: short or millisecond")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto environment = must(cli::open_environment({}, device));
  const Task task = steady_task(device, workload);
  nlohmann::json out = {{"schema", "hone.record.aa/1"}, {"machine", machine(*environment->device)}, {"workload", workload}};
  out["aa"] = to_json(judge_often(task, steady_twin(device, 0), environment->bench(), tries, aa_budget, 1));
  out["aa"]["budget_s"] = aa_budget;
  out["slower"] = to_json(judge_often(task, steady_twin(device, permille), environment->bench(), slow, budget, 1 / (1 + permille / 1000.0)));
  out["slower"]["permille"] = permille;
  out["slower"]["budget_s"] = budget;
  fmt::print("{}\n", out.dump(1));
  return 0;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::run(argc, argv); }
