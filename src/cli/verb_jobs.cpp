#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/remote.h"

namespace hone::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string remote, id;
  int limit = 20;
  bool follow = false;
};

void print_json(const json& value) { fmt::print("{}\n", value.dump(2, ' ', false, json::error_handler_t::replace)); }

std::string text_of(const json& job, const char* key) {
  const auto found = job.find(key);
  return found != job.end() && found->is_string() ? found->get<std::string>() : "-";
}

std::string outcome_of(const json& job) {
  const json& result = job.contains("result") ? job["result"] : json();
  const json error = result.is_object() && result.contains("error") ? result["error"] : job.value("error", json());
  if (error.is_object()) return error.value("kind", "error") + ": " + error.value("message", "");
  if (result.is_object() && result.contains("report"))
    return fmt::format("passed: {}/{}", result["report"].value("passed", 0), result["report"].value("total", 0));
  return "";
}

void print_line(const json& job) {
  fmt::print("{}  {:<9} {:<8} {}  waited {:.1f} s, ran {:.1f} s  {}\n", text_of(job, "id"), text_of(job, "state"), text_of(job, "kind"),
             text_of(job, "accepted"), job.value("queued_s", 0.0), job.value("ran_s", 0.0), outcome_of(job));
}

Result<int> list(const Global& global, const Options& options) {
  HONE_TRY(auto service, need_service(global, options.remote));
  HONE_TRY(const json jobs, service.jobs(options.limit));
  if (global.json) print_json(jobs);
  else for (const json& each : jobs.at("jobs")) print_line(each);
  if (!global.json && jobs["jobs"].empty()) fmt::print("no jobs\n");
  return 0;
}

Result<int> show(const Global& global, const Options& options) {
  HONE_TRY(auto service, need_service(global, options.remote));
  HONE_TRY(const json job, service.job(options.id));
  if (global.json) {
    print_json(job);
    return 0;
  }
  print_line(job);
  if (job["result"].is_object() && job["result"].contains("report")) {
    HONE_TRY(const Report report, report_from_json(job["result"]["report"]));
    fmt::print("\n{}", to_text(report));
  } else {
    print_result(job["result"]);
  }
  return 0;
}

Result<int> cancel(const Global& global, const Options& options) {
  HONE_TRY(auto service, need_service(global, options.remote));
  HONE_TRY(const json job, service.cancel(options.id));
  if (global.json) print_json(job);
  else print_line(job);
  return 0;
}

Result<int> logs(const Global& global, const Options& options) {
  HONE_TRY(auto service, need_service(global, options.remote));
  json all = json::array();
  for (std::int64_t seen = 0;;) {
    HONE_TRY(const json job, service.job(options.id, options.follow ? 1 : 0, seen));
    for (const json& event : job.at("events")) {
      seen = event.value("n", seen);
      if (global.json) all.push_back(event);
      else fmt::print("{}  {:<10} {}\n", text_of(event, "time"), text_of(event, "name"), event["data"].empty() ? "" : event["data"].dump());
    }
    std::fflush(stdout);
    const std::string state = text_of(job, "state");
    if (!options.follow || state == "done" || state == "cancelled" || interrupted()) break;
  }
  if (global.json) print_json({{"schema", "hone.job_events/1"}, {"events", std::move(all)}});
  return 0;
}

}  // namespace

void define_jobs(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  auto command = [&](const char* name, const char* summary, const char* example, Result<int> (*action)(const Global&, const Options&)) {
    CLI::App* sub = add_command(app, invocation, name, summary, example, [&invocation, options, action] { return action(invocation.global, *options); });
    sub->add_option("--remote", options->remote, "the service's URL (default: HONE_URL)");
    return sub;
  };
  const auto one = [&](CLI::App* sub) { sub->add_option("id", options->id, "a job's id")->required(); };
  command("list", "this token's jobs, latest first", "hone jobs list --remote http://127.0.0.1:8000", &list)
      ->add_option("--limit", options->limit, "how many")->check(CLI::Range(1, 500))->capture_default_str();
  one(command("show", "one job and its result", "hone jobs show j-0123456789abcdef", &show));
  one(command("cancel", "ends a job that waits or runs", "hone jobs cancel j-0123456789abcdef", &cancel));
  CLI::App* logging = command("logs", "what has happened to a job", "hone jobs logs j-0123456789abcdef --follow", &logs);
  one(logging);
  logging->add_flag("--follow", options->follow, "until it ends");
}

}  // namespace hone::cli
