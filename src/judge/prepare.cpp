#include "judge/prepare.h"

#include <algorithm>

#include "base/clock.h"
#include "contract/task_error.h"
#include "toolchain/headers.h"

namespace hone {
namespace {

using json = nlohmann::json;

Result<Program> link_program(const Candidate& candidate, const Plan& plan, const ProblemShape& problem,
                             const BuiltModules& built) {
  Executable out;
  out.name = candidate.name;
  out.plan = plan;
  out.trusted = candidate.trusted;
  std::vector<const BuiltModule*> modules;
  for (const PlanModule& module : plan.modules) {
    const auto found = built.find({module.source, module.defines});
    if (found == built.end()) {                    // declared but launched by nobody
      modules.push_back(nullptr);
      out.modules.emplace_back();
      continue;
    }
    if (!found->second) return fail(found->second.error());
    modules.push_back(&*found->second);
    out.modules.push_back({found->second->artifact.path});
  }
  for (const PlanStep& step : plan.launches) {
    const auto* launch = std::get_if<PlanLaunch>(&step);
    if (launch == nullptr) {
      out.entry.emplace_back();
      continue;
    }
    HONE_TRY(KernelSymbol symbol, resolve_kernel(modules[launch->module]->bytes, *launch, problem, candidate.trusted));
    out.entry.push_back({symbol.offset, std::move(symbol.symbol)});
  }
  Program program{candidate.name, std::move(out), 0};
  for (const PlanWorkspace& workspace : plan.workspaces) program.workspace_bytes += static_cast<std::uint64_t>(workspace.bytes);
  return program;
}

Result<> fits_device(const Candidate& candidate, const DeviceInfo& device) {
  const bool gpu = device.architecture.starts_with("sm_");
  if (candidate.is_cuda() == gpu) return {};
  return fail(make_error(ErrorKind::contract, "candidate {} is {}, the device is {}", candidate.name,
                         candidate.is_cuda() ? "CUDA code" : "C++ for a CPU", device.architecture)
                  .with_hint(gpu ? "a candidate for a GPU has a kernel.cu" : "a candidate for a CPU has a kernel.cpp"));
}

Error for_workload(Error error, const Workload& workload) {
  error.message = fmt::format("workload {}: {}", workload.id, error.message);
  return error;
}

// When nothing can run, the first reason is the whole answer; a broken machine always is.
Result<> hopeless(const std::vector<Result<Program>>& programs) {
  bool all = !programs.empty();
  for (const auto& program : programs) {
    if (!program && exit_code_of(program.error().kind) >= 3) return fail(program.error());
    all = all && !program && exit_code_of(program.error().kind) == 2;
  }
  if (all) return fail(programs.front().error());
  return {};
}

// Whose headers a baseline was compiled with; `text` is for a report.
struct Headers {
  std::vector<fs::path> includes;
  json facts;
  std::string text;
};

Result<Headers> headers_of(const BaselineSpec& baseline) {
  const HeaderPackage* package = find_header_package(baseline.needs);
  if (package == nullptr) return Headers{};
  HONE_TRY(const fs::path include, find_headers(*package));
  HONE_TRY(const std::string hash, headers_sha256(*package, include));
  const bool pinned = hash == package->sha256;
  Headers out{{include}, {{"package", package->project}, {"version", pinned ? json(package->version) : json(nullptr)}, {"sha256", hash}}, {}};
  out.text = pinned ? fmt::format("{} {}, headers sha256 {:.12}", package->project, package->version, hash)
                    : fmt::format("{}, headers other than those of {}, sha256 {:.12}", package->project, package->version, hash);
  return out;
}

std::vector<std::string> names_of(const SourceTree& sources) {
  std::vector<std::string> out;
  for (const auto& [name, bytes] : sources) out.push_back(name);
  return out;
}

}  // namespace

Result<ProgramId> load(Session& session, const Program& program) {
  return std::visit([&](const auto& what) { return session.load(what); }, program.what);
}

Result<> runs_on(const Task& task, const DeviceInfo& device) {
  if (task.device != device.name)
    return fail(ErrorKind::environment, "task {} is for device {}, this one is {}", task.name, task.device, device.name);
  const auto& known = task.architectures;
  if (!known.empty() && std::find(known.begin(), known.end(), device.architecture) == known.end())
    return fail(ErrorKind::environment, "task {} is for {}, this device is {}", task.name, fmt::join(known, ", "), device.architecture);
  return {};
}

Result<OracleCode> load_code(const Task& task, Bench bench) {
  OracleCode out;
  if (task.oracle.ends_with(".cu")) {
    HONE_TRY(const Artifact artifact, compile_task_code(task, bench.toolchain, bench.device.info().architecture));
    out.on_device = artifact.path;
  } else {
    HONE_TRY(out.here, TaskCode::load(task, bench.toolchain));
  }
  return out;
}

Result<Prepared> prepare(const Candidate& candidate, const std::vector<Workload>& workloads, Bench bench) {
  Prepared out;
  out.name = candidate.name;
  const DeviceInfo& info = bench.device.info();
  HONE_CHECK(fits_device(candidate, info));
  std::vector<ProblemShape> problems;
  for (const Workload& workload : workloads) problems.push_back(problem_of(workload, info.architecture, info.workers));

  const double plan_start = now_s();
  HONE_TRY(std::vector<Result<Plan>> plans, evaluate_plans(candidate, problems, bench.toolchain, bench.sandbox));
  const std::vector<std::string> sources = names_of(candidate.sources);
  WantedModules wanted;
  std::vector<Result<Program>> unplanned;
  out.facts["plans"] = json::object();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i])
      if (auto valid = validate(*plans[i], problems[i], info.limits, sources); !valid) plans[i] = fail(valid.error());
    if (!plans[i]) {
      unplanned.push_back(fail(for_workload(plans[i].error(), workloads[i])));
      continue;
    }
    out.facts["plans"][workloads[i].id] = plan_to_json(*plans[i]);
    want_modules(*plans[i], wanted);
  }
  out.plan_s = now_s() - plan_start;
  if (unplanned.size() == plans.size()) HONE_CHECK(hopeless(unplanned));

  const double compile_start = now_s();
  const BuiltModules built = build_modules(candidate, wanted, info.architecture, bench.toolchain);
  out.facts["modules"] = json::array();
  for (const auto& [key, module] : built) {
    if (!module) continue;
    json facts = artifact_facts(module->artifact);
    facts["source"] = key.source;
    facts["defines"] = key.defines;
    out.facts["modules"].push_back(std::move(facts));
    out.modules.emplace(key, module->artifact);
  }
  out.compile_s = now_s() - compile_start;

  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i]) out.programs.push_back(link_program(candidate, *plans[i], problems[i], built));
    else out.programs.push_back(fail(for_workload(plans[i].error(), workloads[i])));
  }
  HONE_CHECK(hopeless(out.programs));
  return out;
}

Result<Prepared> prepare(const Task& task, const BaselineSpec& baseline, const std::vector<Workload>& workloads,
                         Bench bench) {
  const bool program = baseline.kind == BaselineSpec::Kind::program;
  const auto blame_task = [&](Error error) {
    return error_of_task(task, "baseline " + baseline.name, program ? task.folder / baseline.source : task.folder, std::move(error));
  };
  HONE_TRY(const Headers headers, headers_of(baseline));
  if (program) {
    auto candidate = load_candidate(task.folder / baseline.source);
    if (!candidate) return fail(blame_task(candidate.error()));
    candidate->name = baseline.name;
    candidate->trusted = true;
    candidate->includes = headers.includes;
    auto prepared = prepare(*candidate, workloads, bench);
    if (!prepared) return fail(blame_task(prepared.error()));
    for (auto& each : prepared->programs) {
      if (!each) return fail(blame_task(each.error()));
      each->description = headers.text;
    }
    if (!headers.includes.empty()) prepared->facts["headers"] = headers.facts;
    return prepared;
  }
  CompileRequest request;
  request.sources = task.files;
  request.entry = baseline.source;
  request.flags = baseline.flags;
  request.link = baseline.link;
  request.includes = headers.includes;
  request.trusted = true;
  for_device(request, bench.device.info().architecture);
  const double start = now_s();
  auto artifact = bench.toolchain.compile(request);
  if (!artifact) return fail(blame_task(artifact.error()));
  Prepared out;
  out.name = baseline.name;
  out.compile_s = now_s() - start;
  out.facts["modules"] = json::array({artifact_facts(*artifact)});
  if (!headers.includes.empty()) out.facts["headers"] = headers.facts;
  for (std::size_t i = 0; i < workloads.size(); ++i)
    out.programs.push_back(Program{baseline.name, NativeBaseline{baseline.name, artifact->path}, 0, headers.text});
  return out;
}

std::optional<std::string> left_out(const BaselineSpec& baseline) {
  const HeaderPackage* package = find_header_package(baseline.needs);
  if (package == nullptr) return std::nullopt;
  if (const auto include = find_headers(*package); !include) return fmt::format("baseline {}: {}", baseline.name, include.error().message);
  return std::nullopt;
}

}  // namespace hone
