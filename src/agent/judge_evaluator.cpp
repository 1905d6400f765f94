#include <algorithm>
#include <map>
#include <thread>

#include "agent/evaluator.h"
#include "judge/prepare.h"

namespace hone {
namespace {

// Where candidates are judged.
struct Bureau {
  std::function<Result<Report>(const JudgeRequest&)> judge;
  std::function<void(const Candidate&)> compile;       // may be empty
};

class JudgeEvaluator : public Evaluator {
 public:
  JudgeEvaluator(const Task& task, Bureau bureau, const std::atomic<bool>* cancel) : task_(task), bureau_(std::move(bureau)), cancel_(cancel) {}

  Result<Report> evaluate(const Evaluation& evaluation) override {
    JudgeRequest request;
    if (!evaluation.baseline) request.candidate = evaluation.candidate;
    request.incumbent = evaluation.incumbent;
    request.quick = evaluation.quick;
    // A shorter time than the contract's policy, never a longer one.
    if (evaluation.time_budget_s)
      request.time_budget_s = std::min(*evaluation.time_budget_s, task_.timing.budget_s * static_cast<double>(task_.workloads.size()));
    request.workloads = evaluation.workloads;
    request.samples = evaluation.samples;
    request.progress = evaluation.progress;
    request.cancel = evaluation.cancel != nullptr ? evaluation.cancel : cancel_;
    if (evaluation.quick) request.baselines = baselines_;
    auto report = bureau_.judge(request);
    // Which baseline counts does not depend on the candidate; a full measurement looks again.
    if (report)
      for (const WorkloadReport& each : report->workloads)
        if (!each.baseline.empty() && each.ratio) baselines_[each.id] = each.baseline;
    return report;
  }

  void prepare(const std::vector<Candidate>& upcoming) override {
    if (!bureau_.compile) return;
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i; (i = next++) < upcoming.size();)
        if (cancel_ == nullptr || !*cancel_) bureau_.compile(upcoming[i]);
    };
    std::vector<std::thread> threads;
    const std::size_t jobs = std::min<std::size_t>({upcoming.size(), std::thread::hardware_concurrency(), 8});
    for (std::size_t i = 1; i < jobs; ++i) threads.emplace_back(work);
    work();
    for (std::thread& each : threads) each.join();
  }

 private:
  const Task& task_;
  Bureau bureau_;
  const std::atomic<bool>* cancel_;
  std::map<std::string, std::string> baselines_;   // the faster ones, by workload
};

}  // namespace

std::unique_ptr<Evaluator> make_judge_evaluator(const Task& task, Bench bench, const std::atomic<bool>* cancel) {
  return std::make_unique<JudgeEvaluator>(
      task, Bureau{[&task, bench](const JudgeRequest& request) { return judge(task, request, bench); },
                   [&task, bench](const Candidate& candidate) { (void)prepare(candidate, task.workloads, bench); }},
      cancel);
}

std::unique_ptr<Evaluator> make_remote_evaluator(const Task& task, client::ServiceClient& service, const std::atomic<bool>* cancel) {
  return std::make_unique<JudgeEvaluator>(
      task, Bureau{[&task, &service](const JudgeRequest& request) { return client::judge_remotely(service, task, request); }, {}}, cancel);
}

}  // namespace hone
