// What a hone-gpu is told: by a session as it goes, or all at once for a process that a tool watches.
#include "device/cuda/encode.h"
#include "device/cuda/session.h"

namespace hone::cuda {

using nlohmann::json;

json open_request(const Setup& setup, const SessionSpec& spec) {
  return {{"do", "open"},
          {"workload", to_json(spec.workload)},
          {"ordinal", setup.ordinal},
          {"helpers", setup.helpers.string()},
          {"task_code", spec.task_code.string()},
          {"memory_bytes", spec.memory_bytes},
          {"call_timeout_s", spec.call_timeout_s}};
}

json fill_request(const InputSet& set, std::uint64_t seed, std::uint32_t call) {
  return {{"do", "fill"}, {"set", to_json(set)}, {"seed", seed}, {"call", call}};
}

json load_request(const Executable& program) {
  json modules = json::array(), symbols = json::array();
  for (const LoadedModule& each : program.modules) modules.push_back(each.path.string());
  for (const KernelEntry& each : program.entry) symbols.push_back(each.symbol);
  return {{"do", "load"}, {"plan", plan_to_json(program.plan)}, {"modules", std::move(modules)}, {"symbols", std::move(symbols)}};
}

Result<WatchedCommand> watched_command(const Setup& setup, const WatchSpec& spec, const fs::path& folder) {
  constexpr ProgramId kId = 0;
  json open = open_request(setup, spec.session), load = load_request(spec.program);
  open["plain"] = true;
  load["id"] = kId;
  load["name"] = spec.program.name;
  std::string lines;
  for (const json& each :
       {open, fill_request(spec.inputs, spec.seed, 0), load, json{{"do", "watched"}, {"id", kId}, {"rehearsals", spec.rehearsals}}})
    lines += each.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  const fs::path requests = folder / "requests.jsonl", answer = folder / "answer.json";
  HONE_CHECK(write_file_atomic(requests, lines, 0600));
  return WatchedCommand{{(setup.libexec / "hone-gpu").string(), "--once", requests.string(), answer.string()}, gpu_environment(), answer};
}

}  // namespace hone::cuda
