#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/remote.h"
#include "cli/subject.h"
#include "judge/receipt.h"
#include "run/launcher.h"
#include "run/record.h"

namespace hone::cli {
namespace {

struct Options {
  std::string candidate, task, run, budget, memory, remote;
  std::vector<std::string> workloads;
  std::optional<std::uint64_t> seed;
  std::optional<int> samples;
};

Result<JudgeRequest> request_of(const Options& options) {
  JudgeRequest request;
  request.workloads = options.workloads;
  request.seed = options.seed;
  request.samples = options.samples;
  if (!options.budget.empty()) {
    HONE_TRY(const auto pairs, parse_pairs(options.budget, {"time"}));
    if (const auto time = pairs.find("time"); time != pairs.end()) {
      HONE_TRY(request.time_budget_s, parse_duration(time->second));
    }
  }
  if (!options.memory.empty()) {
    HONE_TRY(request.memory_bytes, parse_size(options.memory));
  }
  return request;
}

Result<Report> judge_here(const Global& global, const Task& task, const JudgeRequest& request) {
  HONE_TRY(const std::unique_ptr<Environment> environment, open_environment(global, task.device));
  return judge(task, request, environment->bench());
}

int print_report(const Global& global, const Report& report) {
  end_progress();
  if (global.json) fmt::print("{}\n", to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else fmt::print("{}", to_text(report));
  return report.exit_code();
}

// While agents work on the run, its launcher measures; nullopt: nobody works on it.
Result<std::optional<int>> bench_by_launcher(const Global& global, const Run& run, const JudgeRequest& request, const Options& options) {
  std::error_code code;
  nlohmann::json ask = {{"do", "bench"}, {"workloads", request.workloads}};
  ask["candidate"] = options.candidate == "baseline" ? options.candidate : fs::absolute(candidate_path(run, options.candidate), code).string();
  if (request.time_budget_s) ask["time_budget_s"] = *request.time_budget_s;
  if (request.samples) ask["samples"] = *request.samples;
  HONE_TRY(const auto answer, ask_launcher(run, ask, progress_printer(global), &interrupted()));
  if (!answer) {
    HONE_CHECK(check_turn_has_launcher());
    return std::optional<int>();
  }
  if (request.seed || request.memory_bytes)
    fmt::print(stderr, "note: --seed and --memory are not taken while agents work on the run\n");
  HONE_TRY(Report report, report_from_json(answer->value("report", nlohmann::json::object())));
  if (const auto& receipt = (*answer)["report"]["receipt"]; receipt.is_string()) report.receipt = receipt.get<std::string>();
  const int exit = print_report(global, report);
  if (const auto retained = answer->find("retained"); retained != answer->end() && retained->is_string())
    fmt::print(stderr, "retained as {}\n", retained->get<std::string>());
  for (const auto& note : answer->value("notes", std::vector<std::string>{})) fmt::print(stderr, "note: {}\n", note);
  if (const std::string spent = answer->value("spent", std::string()); !spent.empty()) fmt::print(stderr, "spent: {}\n", spent);
  return std::optional<int>(exit);
}

Result<int> bench(const Global& global, const Options& options) {
  HONE_TRY(JudgeRequest request, request_of(options));
  // First of all, and without the task: an agent's program may not see all of it.
  HONE_TRY(const auto here, run_of(options.run));
  if (here && (options.task.empty() || options.task == here->manifest.task)) {
    HONE_TRY(const auto done, bench_by_launcher(global, *here, request, options));
    if (done) return *done;
  }
  HONE_TRY(const Subject subject, find_subject(options.candidate, options.task, options.run));
  const auto& [run, task, in_run] = subject;
  if (options.candidate != "baseline") {
    HONE_TRY(request.candidate, load_candidate_of(subject, options.candidate));
    if (in_run) {
      HONE_TRY(request.incumbent, incumbent_of(*run));
      if (request.incumbent && request.incumbent->sha256 == request.candidate->sha256) request.incumbent.reset();
    }
  }
  HONE_TRY(auto service, find_service(global, options.remote, subject.remote()));
  request.cancel = &interrupted();
  request.progress = progress_printer(global);
  auto judged = service ? client::judge_remotely(*service, task, request) : judge_here(global, task, request);
  if (!judged) return fail(located(std::move(judged).error(), request.candidate));
  Report& report = *judged;

  // The result is printed even when it cannot be kept.
  Result<> kept;
  if (in_run && request.candidate) {
    if (auto row = record_bench(*run, report, *request.candidate); !row) kept = fail(row.error());
  } else {
    kept = write_receipt(report, in_run ? run->receipts() : data_dir() / "receipts");
  }
  const int exit = print_report(global, report);
  if (!kept) {
    Global as_text = global;
    as_text.json = false;                        // stdout holds one object already
    return report_error(as_text, kept.error());
  }
  return exit;
}

}  // namespace

void define_bench(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("candidate", options->candidate, "folder of a candidate, or `baseline`")->required();
  app.add_option("--task", options->task, "task by name or folder; found by itself in a run and in kernels/<task>/");
  app.add_option("--run", options->run, "run to record the result in; found by itself inside one");
  app.add_option("--workload", options->workloads, "only these workloads (then there is no geomean)")->delimiter(',')->take_all();
  app.add_option("--seed", options->seed, "instead of a secret one")->check(seed_fault);
  app.add_option("--samples", options->samples, "exactly this many pairs a workload")->check(CLI::Range(1, 1000000));
  app.add_option("--budget", options->budget, "time=10s: for measuring all workloads; correctness is never cut short");
  app.add_option("--memory", options->memory, "limit of a workload's tensors and the program's memory: 1GiB");
  app.add_option("--remote", options->remote, "URL of the evaluation service that judges; `local`: here (default: HONE_URL, then the run's)");
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return bench(invocation.global, *options); };
  });
}

}  // namespace hone::cli
