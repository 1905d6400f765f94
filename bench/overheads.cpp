// What Hone costs beside compiling and measuring: plan evaluation, a compile cache hit, the judge.
#include <algorithm>

#include "common.h"
#include "judge/receipt.h"

namespace hone::bench {
namespace {

nlohmann::json milliseconds(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) { return 1e3 * seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))]; };
  return {{"tries", seconds.size()}, {"p50_ms", at(0.5)}, {"p95_ms", at(0.95)}, {"most_ms", at(1)}};
}

int run(int argc, char** argv) {
  CLI::App app("What Hone costs beside compiling and measuring.");
  int tries = 20;
  app.add_option("--tries", tries, "times that each cost is measured")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto environment = must(cli::open_environment({}, "cpu"));
  const Bench rooms = environment->bench();
  const Task task = steady_task("cpu", "short");
  const Candidate candidate = steady_twin("cpu", 0);
  const DeviceInfo& device = rooms.device.info();
  const std::vector<ProblemShape> problems = {problem_of(task.workloads.front(), device.architecture, device.workers)};
  nlohmann::json out = {{"schema", "hone.record.overheads/1"}, {"machine", machine(*environment->device)}};

  std::vector<double> plan, hit, judge_s, receipt;
  CompileRequest compile;
  compile.sources = candidate.sources;
  compile.entry = "kernel.cpp";
  const ScratchDir scratch = must(ScratchDir::create());
  for (int i = -1; i < tries; ++i) {                       // the first one fills the caches
    double begin = now_s();
    must(must(evaluate_plans(candidate, problems, rooms.toolchain, rooms.sandbox)).front());
    const double planned = now_s() - begin;
    begin = now_s();
    must(rooms.toolchain.compile(compile));
    const double compiled = now_s() - begin;

    JudgeRequest request;
    request.candidate = candidate;
    request.samples = 40;
    Report report = must(judge(task, request, rooms));
    begin = now_s();
    if (const auto written = write_receipt(report, scratch.path()); !written) must<int>(fail(written.error()));
    const double wrote = now_s() - begin;
    if (i < 0) continue;
    plan.push_back(planned);
    hit.push_back(compiled);
    receipt.push_back(wrote);
    judge_s.push_back(report.receipt_body["seconds"]["own"].get<double>() + wrote);
  }
  out["plan_evaluation"] = milliseconds(plan);
  out["compile_cache_hit"] = milliseconds(hit);
  out["receipt"] = milliseconds(receipt);
  out["judge_own"] = milliseconds(judge_s);                // plan evaluation, statistics and receipt included
  fmt::print("{}\n", out.dump(1));
  return 0;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::run(argc, argv); }
