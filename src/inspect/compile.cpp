#include "inspect/compile.h"

#include <algorithm>

#include "device/known.h"

namespace hone {
namespace {

using nlohmann::json;

Result<std::vector<Workload>> workloads_of(const Task& task, const std::vector<std::string>& ids) {
  std::vector<Workload> out;
  for (const std::string& id : ids) {
    const Workload* found = task.find(id);
    if (found == nullptr) return fail(ErrorKind::not_found, "task {} has no workload {}", task.name, id);
    out.push_back(*found);
  }
  return out.empty() ? task.workloads : out;
}

ModuleKey key_of(const json& module) {
  return {module.at("source").get<std::string>(), module.at("defines").get<std::vector<std::pair<std::string, std::string>>>()};
}

// A warning names kernels by their symbols.
std::string readable(std::string warning, const json& resources) {
  for (const json& kernel : resources) {
    const std::string symbol = kernel.value("symbol", ""), name = kernel.value("kernel", "");
    if (symbol.empty()) continue;
    for (std::size_t at = 0; (at = warning.find(symbol, at)) != std::string::npos; at += name.size())
      warning.replace(at, symbol.size(), name);
  }
  return warning;
}

// Which workloads launch a kernel, where it is not all of them.
std::string launchers(const json& kernel, std::size_t total) {
  const auto ids = kernel.value("workloads", std::vector<std::string>());
  if (ids.size() == total) return {};
  return ids.empty() ? "  launched by no workload" : fmt::format("  for {}", fmt::join(ids, ", "));
}

}  // namespace

std::string target_architecture(const Task& task, const std::string& wanted, const Device* here) {
  if (!wanted.empty()) return wanted;
  if (here != nullptr && runs_on(task, here->info())) return here->info().architecture;
  return task.device == "cpu" || task.architectures.empty() ? task.device : task.architectures.front();
}

Result<std::unique_ptr<Device>> open_target(const std::string& architecture, const Sandbox& sandbox, const fs::path& libexec,
                                            CpuDeviceOptions options) {
  return architecture == "cpu" ? make_cpu_device(sandbox, libexec, options) : make_known_device(architecture);
}

std::vector<std::string> Compiled::launched_by(const ModuleKey& module, const std::string& symbol) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    if (!prepared.programs[i]) continue;
    const auto& program = std::get<Executable>(prepared.programs[i]->what);
    for (std::size_t step = 0; step < program.entry.size(); ++step) {
      const auto* launch = std::get_if<PlanLaunch>(&program.plan.launches[step]);
      if (launch == nullptr || program.entry[step].symbol != symbol) continue;
      const PlanModule& from = program.plan.modules[launch->module];
      if (ModuleKey{from.source, from.defines} != module) continue;
      out.push_back(workloads[i].id);
      break;
    }
  }
  return out;
}

Result<Compiled> compile_for(const Task& task, const Candidate& candidate, const std::vector<std::string>& workloads, Bench bench) {
  HONE_TRY(std::vector<Workload> chosen, workloads_of(task, workloads));
  HONE_TRY(Prepared prepared, prepare(candidate, chosen, bench));
  return Compiled{std::move(chosen), std::move(prepared)};
}

json compile_report(const Task& task, const Candidate& candidate, const Compiled& compiled, Bench bench) {
  json rows = json::array();
  int failed = 0;
  for (std::size_t i = 0; i < compiled.workloads.size(); ++i) {
    const auto& program = compiled.prepared.programs[i];
    failed += program ? 0 : 1;
    rows.push_back({{"id", compiled.workloads[i].id}, {"error", program ? json() : json(program.error())}});
  }
  json modules = compiled.prepared.facts["modules"];
  for (json& module : modules)
    if (module.contains("resources"))
      for (json& kernel : module["resources"])
        kernel["workloads"] = compiled.launched_by(key_of(module), kernel["symbol"].get<std::string>());
  return {{"schema", "hone.compile/1"}, {"task", task.name}, {"candidate", candidate.name}, {"sha256", candidate.sha256},
          {"architecture", bench.device.info().architecture}, {"failed", failed}, {"workloads", std::move(rows)},
          {"plans", compiled.prepared.facts["plans"]}, {"modules", std::move(modules)}};
}

std::string module_name(const json& module) {
  std::string out = module.at("source").get<std::string>();
  for (const auto& [name, value] : key_of(module).defines) out += fmt::format(" {}={}", name, value);
  return out;
}

std::vector<std::pair<Error, std::vector<std::string>>> compile_errors(const json& report) {
  std::vector<std::pair<Error, std::vector<std::string>>> out;
  for (const json& row : report.at("workloads")) {
    if (row.at("error").is_null()) continue;
    Error error;
    from_json(row["error"], error);
    const auto same = std::find_if(out.begin(), out.end(), [&](const auto& each) { return to_text(each.first) == to_text(error); });
    if (same == out.end()) out.push_back({std::move(error), {row.at("id").get<std::string>()}});
    else same->second.push_back(row.at("id").get<std::string>());
  }
  return out;
}

std::string compile_text(const json& report) {
  std::string rows, warnings, compilers;
  const std::size_t total = report.at("workloads").size();
  for (const json& module : report.at("modules")) {
    const std::string name = module_name(module), compiler = module.value("compiler", "");
    if (compilers.find(compiler) == std::string::npos) compilers += ", " + compiler;
    for (const json& kernel : module.value("resources", json::array())) {
      const auto number = [&](const char* key) { return kernel.value(key, std::uint64_t{0}); };
      rows += fmt::format("{:>9}  {:>6}  {:>5}  {:>7}  {:>8}  {}  [{}]{}\n", number("registers"),
                          number("spill_store_bytes") + number("spill_load_bytes"), number("stack_bytes"),
                          number("shared_bytes"), number("barriers"), kernel.value("kernel", ""), name,
                          launchers(kernel, total));
    }
    if (!module.contains("resources")) rows += fmt::format("{}\n", name);
    for (const json& warning : module.value("warnings", json::array()))
      warnings += fmt::format("warning: [{}] {}\n", name, readable(warning.get<std::string>(), module["resources"]));
  }
  const json& modules = report["modules"];
  const bool cuda = std::any_of(modules.begin(), modules.end(), [](const json& each) { return each.contains("resources"); });
  std::string out = cuda ? fmt::format("{:>9}  {:>6}  {:>5}  {:>7}  {:>8}  {}\n", "registers", "spills", "stack",
                                       "shared", "barriers", "kernel  [module]")
                         : "";
  out += rows + warnings;
  return out + fmt::format("\ncompiled: {}/{} workloads for {}, {} module{}{}\n", total - report.value("failed", std::size_t{0}), total,
                           report.value("architecture", ""), modules.size(), modules.size() == 1 ? "" : "s", compilers);
}

}  // namespace hone
