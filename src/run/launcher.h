// The launcher of a run as other processes reach it. While `hone run` works it alone measures and writes the record;
// it listens on RUN/launcher.sock, and whoever wants something measured, retained or said asks it there.
//
// One connection a request: one JSON object on a line, then lines of {"progress": TEXT} and a last one with "done": true
// and either what was asked for or {"error": {...}} (base/error.h).
//
//   do             further members                                         gives
//   bench          candidate (absolute folder, or "baseline"), workloads[], time_budget_s, samples
//                                                                          report (hone.bench/1), row, known, retained, notes[]
//   frontier_add   candidate (folder), receipt, name, family, parent       entry, row
//   frontier_drop  name, why                                               -
//   finding        text                                                    row
//   status         -                                                       live (hone.live/1)
//   steer          text                                                    row          only from outside an agent's turn
//   pause          off, now                                                paused       "
//   stop           -                                                       -            "
#ifndef HONE_RUN_LAUNCHER_H
#define HONE_RUN_LAUNCHER_H

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "run/run.h"

namespace hone {

constexpr std::size_t kLongestRequest = std::size_t{1} << 20;   // bytes of a request's line

// The last line of the answer; nullopt when nobody listens, also where a killed launcher left its socket. The launcher's
// own errors come with their kind; kind unavailable when it is gone before it answered, cancelled when `cancel` turned
// true first: a measurement that had begun is finished and recorded then, one that waited is given up.
Result<std::optional<nlohmann::json>> ask_launcher(const Run& run, const nlohmann::json& request,
                                                   const std::function<void(const std::string&)>& progress = {},
                                                   const std::atomic<bool>* cancel = nullptr);

// For the launcher: the listening socket. The path may be longer than a socket's address can be.
Result<int> listen_as_launcher(const Run& run);

// Set in the environment of an agent's turn: what it asks for never happens without the launcher.
constexpr const char* kTurnVariable = "HONE_TURN";
// Kind unavailable when this process belongs to a turn whose launcher is gone.
Result<> check_turn_has_launcher();

}  // namespace hone

#endif
