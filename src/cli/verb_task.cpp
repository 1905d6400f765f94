#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/task_skeleton.h"
#include "cli/verb.h"
#include "judge/floor.h"
#include "judge/task_check.h"
#include "run/init.h"

namespace hone::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string name, dir;
};

void print_json(const json& value) { fmt::print("{}\n", value.dump(2, ' ', false, json::error_handler_t::replace)); }

std::string axes_text(const Workload& workload) {
  std::string out;
  for (const auto& [name, values] : workload.axes) {
    if (!out.empty()) out += ", ";
    out += values.size() == 1 ? fmt::format("{}={}", name, values.front()) : fmt::format("{}=[{}]", name, fmt::join(values, " "));
  }
  return out;
}

json axes_json(const Workload& workload) {
  json out = json::object();
  for (const auto& [name, values] : workload.axes) out[name] = values.size() == 1 ? json(values.front()) : json(values);
  return out;
}

// A task that does not load is listed with what is wrong with it.
Result<int> list(const Global& global, const Options&) {
  json out = json::array();
  for (const std::string& name : task_names()) {
    auto task = load_task(name);
    if (task) out.push_back({{"name", name}, {"summary", task->summary}, {"device", task->device}, {"workloads", task->workloads.size()}, {"folder", task->folder.string()}});
    else out.push_back({{"name", name}, {"error", to_text(task.error())}});
    if (global.json) continue;
    if (task) fmt::print("{:<24} {:<6} {} workloads  {}\n", name, task->device, task->workloads.size(), task->summary);
    else fmt::print("{:<24} {}\n", name, to_text(task.error()));
  }
  if (global.json) print_json({{"schema", "hone.tasks/1"}, {"tasks", std::move(out)}});
  else if (out.empty()) fmt::print("no tasks; `hone task new NAME` makes one\n");
  return 0;
}

json task_json(const Task& task) {
  json workloads = json::array(), sets = json::array(), gates = json::object(), baselines = json::array(), tensors = json::array();
  for (const Workload& workload : task.workloads)
    workloads.push_back({{"id", workload.id}, {"axes", axes_json(workload)}, {"flops", workload.flops}, {"bytes", workload.bytes}});
  for (const TensorShape& tensor : task.workloads.front().tensors)
    tensors.push_back({{"name", tensor.name}, {"role", name_of(tensor.role)}, {"dtype", name_of(tensor.dtype)}});
  for (const InputSet& set : task.input_sets) sets.push_back({{"name", set.name}, {"reason", set.reason}});
  for (const auto& [tensor, gate] : task.gates) gates[tensor] = {{"metric", gate.metric}, {"limit", gate.limit}, {"abs_floor", gate.abs_floor}};
  for (const BaselineSpec& baseline : task.baselines)
    baselines.push_back({{"name", baseline.name}, {"kind", baseline.kind == BaselineSpec::Kind::native ? "native" : "program"}});
  return {{"schema", "hone.task_facts/1"}, {"name", task.name}, {"summary", task.summary}, {"device", task.device}, {"folder", task.folder.string()},
          {"sha256", task.sha256}, {"tensors", std::move(tensors)}, {"workloads", std::move(workloads)}, {"input_sets", std::move(sets)},
          {"gates", std::move(gates)}, {"baselines", std::move(baselines)}, {"notes", task.notes}};
}

Result<int> show(const Global& global, const Options& options) {
  HONE_TRY(const Task task, load_task(options.name));
  if (global.json) {
    print_json(task_json(task));
    return 0;
  }
  fmt::print("{}\n{}\n\n  device    {}\n  folder    {}\n  sha256    {}\n", task.name, task.summary, task.device, task.folder.string(), task.sha256);
  for (const auto& [tensor, gate] : task.gates)
    fmt::print("  gate      {}: {} <= {:g}{}\n", tensor, gate.metric, gate.limit, gate.abs_floor > 0 ? fmt::format(", floor {:g}", gate.abs_floor) : "");
  for (const BaselineSpec& baseline : task.baselines)
    fmt::print("  baseline  {} ({})\n", baseline.name, baseline.kind == BaselineSpec::Kind::native ? "native" : "kernel program");
  for (const Workload& workload : task.workloads) {
    fmt::print("\n  {}: {}; {:.2f} MFLOP, {:.2f} MB\n", workload.id, axes_text(workload), 1e-6 * workload.flops, 1e-6 * workload.bytes);
    for (const TensorShape& tensor : workload.tensors)
      fmt::print("    {:<10} {:<10} {:<5} [{}]{}\n", tensor.name, name_of(tensor.role), name_of(tensor.dtype), fmt::join(tensor.shape, ", "),
                 tensor.dense() ? "" : fmt::format(" strides [{}]", fmt::join(tensor.strides, ", ")));
  }
  fmt::print("\n  inputs\n");
  for (const InputSet& set : task.input_sets) fmt::print("    {:<16} {}\n", set.name, set.reason.empty() ? "timed" : set.reason);
  if (!task.notes.empty()) fmt::print("\n{}", task.notes);
  return 0;
}

Result<int> check(const Global& global, const Options& options) {
  HONE_TRY(const Task task, load_task(options.name));
  HONE_TRY(const std::unique_ptr<Environment> environment, open_environment(global, task.device));
  HONE_TRY(const TaskCheck found, check_task(task, environment->bench(), progress_printer(global), &interrupted()));
  end_progress();
  if (global.json) {
    print_json(to_json(found));
  } else {
    fmt::print("{}", to_text(found));
    std::fflush(stdout);
    for (const Error& error : found.faults) report_error(global, error);
  }
  return found.sane() ? 0 : exit_code_of(ErrorKind::contract);
}

Result<int> make(const Global& global, const Options& options) {
  const bool good = !options.name.empty() && options.name.size() <= 64 && std::isalpha(static_cast<unsigned char>(options.name[0])) != 0 &&
                    std::all_of(options.name.begin(), options.name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!good)
    return fail(make_error(ErrorKind::usage, "`{}` is no name for a task", options.name).with_hint("letters, digits and _, a letter first, at most 64"));
  const std::vector<std::string> known = task_names();
  if (options.dir.empty() && std::find(known.begin(), known.end(), options.name) != known.end())
    return fail(make_error(ErrorKind::usage, "there is a task {} already", options.name).with_hint("choose another name, or make it elsewhere with --dir"));
  const fs::path folder = options.dir.empty() ? data_dir() / "tasks" / options.name : fs::path(options.dir);
  std::error_code ignored;
  const auto exists = [&] {
    return fail(make_error(ErrorKind::usage, "{} exists already", folder.string()).with_hint("choose another name or --dir"));
  };
  if (fs::exists(folder, ignored)) return exists();
  const std::string path = fs::absolute(folder).lexically_normal().string();
  // Beside its place, then renamed: it is there whole or not at all.
  const fs::path parent = fs::path(path).has_filename() ? fs::path(path).parent_path() : fs::path(path).parent_path().parent_path();
  HONE_CHECK(make_dirs(parent));
  HONE_TRY(const ScratchDir beside, ScratchDir::create(parent));
  for (const auto& [file, bytes] : task_skeleton()) {
    HONE_CHECK(make_dirs((beside.path() / "task" / file).parent_path()));
    HONE_CHECK(write_file_atomic(beside.path() / "task" / file, bytes));
  }
  HONE_TRY(const bool made, rename_new(beside.path() / "task", path));
  if (!made) return exists();
  if (global.json) print_json({{"schema", "hone.task_new/1"}, {"folder", path}});
  else fmt::print("{}\n", path);
  if (!global.quiet)
    fmt::print(stderr, "next: edit task.yaml, task.cpp and baseline/, then `hone task check {}`\n", options.dir.empty() ? options.name : path);
  return 0;
}

using Action = Result<int> (*)(const Global&, const Options&);

void define(CLI::App& app, Invocation& invocation, const char* name, const char* summary, const char* example, const char* operand, Action action) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = add_command(app, invocation, name, summary, example, [&invocation, options, action] { return action(invocation.global, *options); });
  if (operand != nullptr) sub->add_option("name", options->name, operand)->required();
  if (std::string_view(name) == "new") sub->add_option("--dir", options->dir, "folder to make instead of one among your tasks");
}

}  // namespace

void define_task(CLI::App& app, Invocation& invocation) {
  app.require_subcommand(1);
  const char* which = "name of a task, or its folder";
  define(app, invocation, "list", "all tasks", "hone task list", nullptr, list);
  define(app, invocation, "show", "a task's tensors, workloads, gates and inputs", "hone task show grouped_gemm_f32", which, show);
  define(app, invocation, "check", "prove that a task can tell right from wrong", "hone task check grouped_gemm_f32", which, check);
  define(app, invocation, "new", "write a working task to start from", "hone task new my_operation", "name of the new task", make);
}

}  // namespace hone::cli
