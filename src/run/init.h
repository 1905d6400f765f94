// `hone init`: makes a run directory, whole or not at all.
#ifndef HONE_RUN_INIT_H
#define HONE_RUN_INIT_H

#include <optional>
#include <string>

#include "contract/task.h"
#include "run/run.h"

namespace hone {

struct InitRequest {
  std::string task_source;               // as load_task took it
  std::optional<fs::path> dir;           // the run directory itself; default: data_dir()/runs/<name>
  std::string name;                      // default: the folder's name, else <task>-<n>
  std::optional<double> target;
  Budget budget;
  std::optional<std::uint64_t> seed;
  std::string remote;                    // URL of the evaluation service; empty: this machine judges
  nlohmann::json device;                 // DeviceInfo's name, model, architecture, workers; null: unknown
};

// Built beside its final place and renamed there: a failure leaves nothing. Errors: usage (exists
// already), contract (a leak ban that matches nothing), io, environment (no git).
Result<Run> init_run(const Task& task, const InitRequest& request);

// Gives a folder built beside `to` its place, where nothing must lie yet; false when something does.
Result<bool> rename_new(const fs::path& from, const fs::path& to);

}  // namespace hone

#endif
