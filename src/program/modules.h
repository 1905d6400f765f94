// The modules that plans launch kernels of: one compile for each distinct source with its macros.
#ifndef HONE_PROGRAM_MODULES_H
#define HONE_PROGRAM_MODULES_H

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/candidate.h"

namespace hone {

struct ModuleKey {
  std::string source;
  std::vector<std::pair<std::string, std::string>> defines;
  auto operator<=>(const ModuleKey&) const = default;
};
// With the template-ids of every launch that uses it.
using WantedModules = std::map<ModuleKey, std::vector<std::string>>;

// Adds what the plan launches. A module that nobody launches is not wanted.
void want_modules(const Plan& plan, WantedModules& wanted);

struct BuiltModule {
  Artifact artifact;
  std::string bytes;
};
using BuiltModules = std::map<ModuleKey, Result<BuiltModule>>;

// Compiles for the device's architecture ("cpu", "sm_90a"), as many at a time as there are cores. Every
// module has an entry: the artifact, or why there is none.
BuiltModules build_modules(const Candidate& candidate, const WantedModules& wanted, const std::string& architecture,
                           const Toolchain& toolchain);

// What a receipt says of a module: hash, compiler, command, and of a cubin what its kernels take.
nlohmann::json artifact_facts(const Artifact& artifact);

}  // namespace hone

#endif
