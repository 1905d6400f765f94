#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/remote.h"
#include "run/init.h"

namespace hone::cli {
namespace {

struct Options {
  std::string task, dir, name, target, budget, remote;
  std::optional<std::uint64_t> seed;
};

Result<Run> make(const Global& global, const Options& options) {
  InitRequest request;
  request.task_source = options.task;
  if (!options.dir.empty()) request.dir = options.dir;
  request.name = options.name;
  request.seed = options.seed;
  if (!options.target.empty()) {
    HONE_TRY(request.target, parse_ratio(options.target));
  }
  HONE_TRY(request.budget, parse_budget(options.budget));
  HONE_TRY(const Task task, load_task(options.task));
  HONE_TRY(auto service, find_service(global, options.remote));
  if (service) {
    HONE_TRY(const auto health, service->health());
    if (!health.ok)
      return fail(make_error(ErrorKind::unavailable, "the service at {} cannot run jobs now: {}", service->url(), health.body.value("reasons", nlohmann::json()).dump()));
    HONE_TRY(const nlohmann::json theirs, service->task(task.name));
    if (theirs.at("sha256") != task.sha256)
      return fail(make_error(ErrorKind::conflict, "task {} is another one on {}: its hash is {} there and {} here", task.name, service->url(),
                             theirs["sha256"].get<std::string>().substr(0, 12), task.sha256.substr(0, 12))
                      .with_hint("install the same version of hone on both sides"));
    request.remote = service->url();
    for (const nlohmann::json& each : health.body.at("devices"))
      if (each.at("device").is_object() && each["device"].value("name", "") == task.device) {
        const nlohmann::json& info = each["device"];
        request.device = {{"name", info["name"]}, {"model", info["model"]}, {"architecture", info["architecture"]}, {"workers", info["workers"]}};
      }
    if (request.device.is_null())
      return fail(make_error(ErrorKind::environment, "the service at {} has no device {}, which task {} is for", service->url(), task.device, task.name));
  } else if (const auto environment = open_environment(global, task.device)) {
    // A run can be made where nothing can be measured; its manifest then says less of the device.
    const DeviceInfo& info = (*environment)->device->info();
    request.device = {{"name", info.name}, {"model", info.model}, {"architecture", info.architecture}, {"workers", info.workers}};
  }
  return init_run(task, request);
}

Result<int> init(const Global& global, const Options& options) {
  HONE_TRY(const Run run, make(global, options));
  if (global.json) {
    fmt::print("{}\n", nlohmann::json{{"schema", "hone.init/1"}, {"name", run.manifest.name}, {"task", run.manifest.task}, {"run", run.root.string()}}.dump(2));
    return 0;
  }
  fmt::print("run {} of task {}: read PROMPT.md, work in worktree/, or let the tuner work with\n", run.manifest.name, run.manifest.task);
  fmt::print("  hone run --run {}\n", shell_word(run.root.string()));
  fmt::print("{}\n", run.root.string());
  return 0;
}

}  // namespace

void define_init(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  app.add_option("--task", options->task, "a task's name or folder")->required();
  app.add_option("--dir", options->dir, "the run directory itself (default: runs/NAME in Hone's data folder)");
  app.add_option("--name", options->name, "the run's name");
  app.add_option("--target", options->target, "speedup over the baseline that ends the run: 1.5x");
  app.add_option("--budget", options->budget, "what the run may spend: evaluations=60,time=120s");
  app.add_option("--seed", options->seed, "of the tuner's random choices")->check(seed_fault);
  app.add_option("--remote", options->remote, "URL of the evaluation service that judges (default: HONE_URL, else this machine)");
  app.callback([&invocation, options] { invocation.action = [&invocation, options] { return init(invocation.global, *options); }; });
}

}  // namespace hone::cli
