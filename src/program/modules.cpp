#include "program/modules.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "program/symbol.h"

namespace hone {
namespace {

Result<BuiltModule> build(const CompileRequest& request, const Toolchain& toolchain) {
  HONE_TRY(Artifact artifact, toolchain.compile(request));
  HONE_TRY(std::string bytes, read_file(artifact.path));
  return BuiltModule{std::move(artifact), std::move(bytes)};
}

}  // namespace

void want_modules(const Plan& plan, WantedModules& wanted) {
  for (const PlanStep& step : plan.launches) {
    const auto* launch = std::get_if<PlanLaunch>(&step);
    if (launch == nullptr) continue;
    const PlanModule& module = plan.modules[launch->module];
    auto& names = wanted[{module.source, module.defines}];
    if (launch->kernel.find('<') != std::string::npos && std::find(names.begin(), names.end(), launch->kernel) == names.end())
      names.push_back(launch->kernel);
  }
}

BuiltModules build_modules(const Candidate& candidate, const WantedModules& wanted, const std::string& architecture,
                           const Toolchain& toolchain) {
  std::vector<std::pair<const ModuleKey*, Result<BuiltModule>>> made;
  std::vector<const std::vector<std::string>*> names;
  for (const auto& [key, kernels] : wanted) {
    made.emplace_back(&key, fail(ErrorKind::internal, "not compiled"));
    names.push_back(&kernels);
  }
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i; (i = next++) < made.size();) {
      CompileRequest request;
      request.sources = candidate.sources;
      request.entry = made[i].first->source;
      request.defines = made[i].first->defines;
      request.instantiate = *names[i];
      request.compiler = candidate.compiler;
      request.flags = candidate.flags;
      request.trusted = candidate.trusted;
      request.includes = candidate.includes;
      if (candidate.is_cuda()) {
        request.architecture = architecture;
        request.kind = ArtifactKind::cubin;
      }
      made[i].second = build(request, toolchain);
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(most, made.size()); ++i) helpers.emplace_back(work);
    work();
  }
  BuiltModules out;
  for (auto& [key, module] : made) out.emplace(*key, std::move(module));
  return out;
}

nlohmann::json artifact_facts(const Artifact& artifact) {
  nlohmann::json out = {{"sha256", artifact.sha256}, {"compiler", artifact.compiler}, {"command", artifact.command}, {"cached", artifact.cached}};
  if (artifact.ptx.empty()) return out;
  out["resources"] = artifact.resources;
  for (nlohmann::json& kernel : out["resources"]) kernel["kernel"] = readable_symbol(kernel["symbol"].get<std::string>());
  out["warnings"] = artifact.warnings;
  return out;
}

}  // namespace hone
