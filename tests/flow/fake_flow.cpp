#include "flow/fake_flow.h"

#include <thread>

#include "base/clock.h"
#include "run/fake_run.h"
#include "testing/testing.h"

namespace hone::testing {
namespace {

using nlohmann::json;

class ScriptDriver : public Driver {
 public:
  ScriptDriver(const hone::Run& run, Script script) : run_(run), script_(std::move(script)) {}
  Result<TurnResult> run(const Turn& turn) override {
    turn.on_event({EventKind::started, 0, {}, {}, {}});
    TurnResult result = script_(Hands(run_, turn));
    if (result.usage.output_tokens || result.usage.cost_usd) turn.on_event({EventKind::usage, 1, {}, {}, result.usage});
    return result;
  }

 private:
  const hone::Run& run_;
  Script script_;
};

double speedup_of(const Candidate& candidate) {
  if (const auto a = candidate.values.find("A"); a != candidate.values.end()) return 1 + std::stod(a->second) / 10;
  const std::string& source = candidate.sources.at("kernel.cpp");
  const std::size_t at = source.find("speedup ");
  return at == std::string::npos ? 0 : std::stod(source.substr(at + 8));
}

}  // namespace

Result<Report> SourceEvaluator::evaluate(const Evaluation& evaluation) {
  most_ = std::max(most_.load(), ++now_);
  struct Leave {
    std::atomic<int>& now;
    ~Leave() { --now; }
  } leave{now_};
  {
    const std::lock_guard held(mutex_);
    judged_.push_back(evaluation.candidate.sha256);
  }
  const std::string& source = evaluation.candidate.sources.at("kernel.cpp");
  if (source.find("half a machine") != std::string::npos) {
    Report report = fake_report(evaluation.candidate, {{"w1", 2.0}, {"w2", std::nullopt}});
    report.workloads[1].error = make_error(ErrorKind::environment, "the runner could not be started");
    return report;
  }
  if (source.find("machine") != std::string::npos) return fail(ErrorKind::sandbox_unavailable, "no namespaces here");
  if (source.find("slow") != std::string::npos)
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (evaluation.cancel == nullptr || !evaluation.cancel->load()) continue;
      Report report = fake_report(evaluation.candidate, {{"w1", std::nullopt}, {"w2", std::nullopt}});
      report.cancelled = true;
      return report;
    }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (source.find("wrong") != std::string::npos) return fake_report(evaluation.candidate, {{"w1", 2.0}, {"w2", std::nullopt}});
  const double speedup = speedup_of(evaluation.candidate);
  if (evaluation.workloads.size() == 1) {
    Report report = fake_report(evaluation.candidate, {{"w1", speedup}});
    report.of_task = 2;
    report.geomean.reset(), report.geomean_ci.reset(), report.decision.reset();
    report.receipt_body = fake_receipt(report, evaluation.candidate, std::string(64, '1'));
    return report;
  }
  const double rival = evaluation.incumbent ? speedup_of(*evaluation.incumbent) : 1;
  if (evaluation.quick) return fake_report(evaluation.candidate, {{"w1", speedup}, {"w2", speedup}});
  return fake_report(evaluation.candidate, {{"w1", speedup}, {"w2", speedup}},
                     speedup > rival * 1.01 ? Decision::keep : speedup < rival * 0.99 ? Decision::reject : Decision::ambiguous);
}

std::vector<std::string> SourceEvaluator::judged() const {
  const std::lock_guard held(mutex_);
  return judged_;
}

fs::path Hands::write(const std::string& name, const std::string& source) const {
  const fs::path folder = run.scratch() / name;
  fs::create_directories(folder);
  (void)write_file_atomic(folder / "kernel.cpp", "// " + source + "\n");
  (void)write_file_atomic(folder / "plan.cpp", "#include <hone/plan.h>\n");
  return folder;
}

Result<json> Hands::ask(json request) const {
  HONE_TRY(auto answer, ask_launcher(run, request));
  if (!answer) return fail(ErrorKind::unavailable, "nobody listens");
  return *std::move(answer);
}

Result<json> Hands::bench(const std::string& name, const std::string& source) const {
  return ask({{"do", "bench"}, {"candidate", write(name, source).string()}});
}

void Hands::wait_for_the_end() const {
  for (const double start = now_s(); !cancelled() && now_s() - start < 60;) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TurnResult said_done() {
  TurnResult result;
  result.end = TurnEnd::finished;
  result.reason = "said it is done";
  return result;
}

TurnResult said_failed(const std::string& reason) {
  TurnResult result;
  result.end = TurnEnd::failed;
  result.reason = reason;
  return result;
}

FlowTest::FlowTest() : run(fake_run(::testing::UnitTest::GetInstance()->current_test_info()->name())) {}

FlowOptions FlowTest::options(const std::string& flow, const std::vector<std::string>& agents, const std::string& budget) {
  FlowOptions options;
  options.flow = flow;
  options.agents = *parse_flow_agents(flow, agents);
  options.budget = *parse_budget(budget);
  options.workloads = 2;
  options.grace_s = 0.2;
  options.slice = 3;
  options.make_driver = [this](const AgentSpec& spec) -> Result<std::unique_ptr<Driver>> {
    const auto script = scripts.find(spec.program);
    if (script == scripts.end()) return fail(ErrorKind::environment, "no program {}", spec.program);
    return std::unique_ptr<Driver>(std::make_unique<ScriptDriver>(run, script->second));
  };
  return options;
}

Result<FlowEnd> FlowTest::work(const FlowOptions& options) {
  HONE_TRY(Ledger ledger, Ledger::open(run.ledger()));
  return run_flow(run, std::move(ledger), options, evaluator);
}

std::vector<LedgerRow> FlowTest::rows() const { return read_ledger(run.ledger())->rows; }

std::vector<std::string> FlowTest::roles() const {
  std::vector<std::string> roles;
  for (const TurnRecord& each : progress().turns.all) roles.push_back(each.role);
  return roles;
}

}  // namespace hone::testing
