// What the benchmark programs share: how they fail, and the task they judge.
#ifndef HONE_BENCH_COMMON_H
#define HONE_BENCH_COMMON_H

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/verb.h"

namespace hone::bench {

// The value, or the error on stderr and the end.
template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", to_text(result.error()));
  std::exit(exit_code_of(result.error().kind));
}

// The sources' own, or HONE_BENCH where they were carried to.
inline fs::path bench_folder() {
  const char* carried = std::getenv("HONE_BENCH");
  return carried != nullptr ? carried : HONE_BENCH_DIR;
}

// The steady task with one workload only, so that a decision is about that workload.
inline Task steady_task(const std::string& device, const std::string& workload) {
  Task task = must(load_task(bench_folder() / "tasks" / (device == "cuda" ? "steady_cuda" : "steady")));
  std::erase_if(task.workloads, [&](const Workload& each) { return each.id != workload; });
  if (task.workloads.empty()) must<int>(fail(ErrorKind::usage, "the steady task has no workload {}", workload));
  return task;
}

inline Candidate steady_twin(const std::string& device, int permille) {
  const Candidate twin = must(load_candidate(bench_folder() / (device == "cuda" ? "steady_twin_cuda" : "steady_twin")));
  return must(twin.with({{"PERMILLE", std::to_string(permille)}}));
}

inline nlohmann::json machine(const Device& device) {
  return {{"model", device.info().model}, {"workers", device.info().workers}, {"time", utc_timestamp()}, {"hone", HONE_VERSION}};
}

}  // namespace hone::bench

#endif
