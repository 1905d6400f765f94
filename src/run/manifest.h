// manifest.json of a run (schema hone.manifest/1): what the run is about and what it was made with.
// Written once by `hone init`; what happens later is in the ledger.
#ifndef HONE_RUN_MANIFEST_H
#define HONE_RUN_MANIFEST_H

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "run/budget.h"
#include "toolchain/toolchain.h"

namespace hone {

struct Manifest {
  std::string name, created;
  std::string task, task_sha256;
  std::string task_source;                      // what load_task takes: the name, or a folder's absolute path
  std::string judge_version, judge_sha256;      // of the running binary
  std::string remote;                           // URL of the evaluation service that judges; empty: this machine
  nlohmann::json device;                        // name, model, architecture, workers; nulls where unknown
  std::vector<CompilerInfo> compilers;
  std::map<std::string, std::string> sources;   // worktree path -> SHA-256, as first committed
  std::optional<double> target;                 // geomean over the baseline that ends a run
  Budget budget;
  std::uint64_t seed = 0;                       // of the tuner, when --seed does not give another
};

Result<Manifest> read_manifest(const fs::path& path);
Result<> write_manifest(const Manifest& manifest, const fs::path& path);

// Text of share/schema/<name>.json of this installation.
Result<std::string> schema_text(const std::string& name);

}  // namespace hone

#endif
