#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/remote.h"
#include "run/run.h"
#include "wire/wire.h"

namespace hone::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string remote, kind = "bench", candidate, task, timeout, queue_timeout;
  std::vector<std::string> workloads, argv;
  std::optional<int> samples;
  int priority = 0;
  bool wait = false;
};

Result<json> request_of(const Options& options) {
  if (options.kind == "exec") {
    if (options.candidate.empty()) return fail(make_error(ErrorKind::usage, "exec needs a command").with_hint("hone submit --kind exec -- uname -a"));
    json argv = json::array({options.candidate});
    for (const std::string& word : options.argv) argv.push_back(word);
    return json{{"argv", std::move(argv)}};
  }
  if (!options.argv.empty()) return fail(ErrorKind::usage, "only exec takes further words");
  HONE_TRY(const std::optional<Run> run, find_run_here());
  if (options.candidate.empty() || (options.task.empty() && !run))
    return fail(make_error(ErrorKind::usage, "a job of kind {} needs a candidate and --task", options.kind));
  HONE_TRY(const Task task, options.task.empty() ? task_of(*run) : load_task(options.task));
  JudgeRequest request;
  if (options.candidate != "baseline") {
    HONE_TRY(request.candidate, load_candidate(options.candidate));
  } else if (options.kind != "bench") {
    return fail(ErrorKind::usage, "only bench knows the baseline");
  }
  request.workloads = options.workloads;
  request.samples = options.samples;
  return wire::bench_request(task, request);
}

Result<int> submit(const Global& global, const Options& options) {
  HONE_TRY(json request, request_of(options));
  json job = {{"kind", options.kind}, {"request", std::move(request)}, {"priority", options.priority}};
  for (const auto& [key, text] : {std::pair{"timeout_s", options.timeout}, std::pair{"queue_timeout_s", options.queue_timeout}})
    if (!text.empty()) {
      HONE_TRY(const double seconds, parse_duration(text));
      job[key] = seconds;
    }
  HONE_TRY(auto service, need_service(global, options.remote));
  HONE_TRY(json accepted, service.submit(job));
  const std::string id = accepted.at("id").get<std::string>();
  if (options.wait) {
    HONE_TRY(accepted, service.follow(id));
    end_progress();
  }
  if (global.json) fmt::print("{}\n", accepted.dump(2, ' ', false, json::error_handler_t::replace));
  else fmt::print("{}\n", id);
  if (!options.wait) return 0;
  const json& result = accepted["result"];
  if (result.is_object() && result.contains("error")) {
    Error error;
    from_json(result["error"], error);
    if (!global.json) return fail(std::move(error));
    return exit_code_of(error.kind);
  }
  if (!global.json) print_result(result);
  if (!result.contains("report")) return result.value("exit_code", 0) == 0 && result.value("failed", 0) == 0 && result.value("findings", 0) == 0 ? 0 : 1;
  HONE_TRY(const Report report, report_from_json(result["report"]));
  if (!global.json) fmt::print("{}", to_text(report));
  return report.exit_code();
}

}  // namespace

void define_submit(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("candidate", options->candidate, "folder of a candidate, or `baseline`; for exec the command");
  app.add_option("argv", options->argv, "for exec: the command's arguments, after --");
  app.add_option("--kind", options->kind, "bench, compile, inspect, profile, sanitize, exec")->capture_default_str();
  app.add_option("--task", options->task, "task by name");
  app.add_option("--workload", options->workloads, "only these workloads")->delimiter(',')->take_all();
  app.add_option("--samples", options->samples, "exactly this many pairs a workload")->check(CLI::Range(1, 1000000));
  app.add_option("--priority", options->priority, "-10 to 10, higher first")->check(CLI::Range(-10, 10))->capture_default_str();
  app.add_option("--timeout", options->timeout, "of running: 10m");
  app.add_option("--queue-timeout", options->queue_timeout, "of waiting: 1h");
  app.add_flag("--wait", options->wait, "until it ends; the exit code is the job's");
  app.add_option("--remote", options->remote, "the service's URL (default: HONE_URL)");
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return submit(invocation.global, *options); };
  });
}

}  // namespace hone::cli
