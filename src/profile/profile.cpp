#include "profile/profile.h"

#include <algorithm>
#include <cctype>

#include "base/hash.h"
#include "profile/figures.h"
#include "profile/ncu_output.h"
#include "profile/tool.h"
#include "program/symbol.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestRaw = std::size_t{16} << 20, kLargestTable = std::size_t{32} << 20;
// What figures.h reads, and what a person wants to open in the profiler's own window.
constexpr const char* kMetrics =
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
constexpr const char* kSections[] = {"SpeedOfLight",   "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
                                     "SchedulerStats", "WarpStateStats",          "InstructionStats",       "LaunchStats",
                                     "Occupancy",      "SourceCounters"};

std::vector<std::string> profiler(const fs::path& ncu, const fs::path& raw) {
  // The GPU's clocks stay as they are; each pass begins with cold caches, as `hone bench` does.
  std::vector<std::string> out = {ncu.string(), "--profile-from-start", "off",   "--clock-control", "none", "--cache-control",
                                  "all",        "--replay-mode",        "kernel"};
  for (const char* section : kSections) out.insert(out.end(), {"--section", section});
  out.insert(out.end(), {"--metrics", kMetrics, "--force-overwrite", "--export", raw.string()});
  return out;
}

Result<std::vector<LaunchMetrics>> read_raw(const fs::path& ncu, const fs::path& raw, const WatchSpec& spec, const WatchedCommand& command,
                                            const WatchRequest& request) {
  ProcessSpec process;
  process.argv = {ncu.string(),    "--import", raw.string(),          "--csv",  "--page", "raw",
                  "--print-units", "base",     "--print-kernel-base", "mangled"};
  process.env = in_plain_words(command.env);
  process.timeout_s = request.timeout_s;
  process.stdout_limit = kLargestTable;
  process.cancel = request.cancel;
  HONE_TRY(const ProcessOutcome outcome, run_process(process));
  if (outcome.cancelled) return fail(ErrorKind::cancelled, "cancelled");
  if (!outcome.ok()) return fail(ncu_fault(outcome.out + "\n" + outcome.err));
  HONE_TRY(std::vector<LaunchMetrics> launches, read_ncu_csv(outcome.out));
  if (launches.empty()) return fail(ErrorKind::device, "ncu's report holds no launch of {}", spec.program.name);
  return launches;
}

json raw_json(const fs::path& raw, const std::string& name) {
  const auto bytes = read_file(raw, kLargestRaw);
  return bytes ? json{{"name", name}, {"hex", to_hex(*bytes)}} : json();
}

}  // namespace

Result<json> profile_report(const Task& task, const Candidate& candidate, const WatchRequest& request, Bench bench) {
  HONE_CHECK(can_watch(task, "ncu"));
  HONE_TRY(const fs::path ncu, find_vendor_tool("ncu"));
  const auto each = [&](const Workload& workload, const WatchSpec& wanted, const fs::path& folder) -> Result<json> {
    WatchSpec spec = wanted;
    const auto& steps = spec.program.entry;
    if (std::all_of(steps.begin(), steps.end(), [](const KernelEntry& step) { return step.symbol.empty(); }))
      return json{{"launches", json::array()}, {"seconds", 0}, {"raw", nullptr}};   // memsets alone
    spec.rehearsals = 1;  // what is loaded and allocated at the first launch is no part of a profile
    HONE_TRY(const WatchedCommand command, bench.device.watched(spec, folder));
    const fs::path raw = folder / "profile.ncu-rep";
    HONE_TRY(const Watched watched, watch(profiler(ncu, raw), command, folder, request));
    if (!watched.ended) return fail(*watched.fault);
    std::error_code code;
    // A candidate that crashes does so without ncu, too; what ends the process, or keeps counters from it, is ncu's to tell.
    const bool told = watched.said.find("==ERROR==") != std::string::npos &&
                      (!watched.answered || watched.said.find("ERR_NVGPUCTRPERM") != std::string::npos);
    if (watched.fault && !told) return fail(*watched.fault);
    if (told || !fs::exists(raw, code)) return fail(ncu_fault(watched.said));
    HONE_TRY(const std::vector<LaunchMetrics> launches, read_raw(ncu, raw, spec, command, request));
    json rows = json::array();
    for (const LaunchMetrics& launch : launches)
      rows.push_back({{"kernel", readable_symbol(launch.kernel)},
                      {"symbol", launch.kernel},
                      {"grid", launch.grid},
                      {"block", launch.block},
                      {"figures", figures_of(launch)}});
    return json{{"launches", std::move(rows)}, {"seconds", watched.seconds}, {"raw", raw_json(raw, workload.id + ".ncu-rep")}};
  };
  HONE_TRY(json report, watch_report(task, candidate, request, task.workloads.front(), bench, each));
  report["schema"] = "hone.profile/1";
  report["tool"] = ncu.string();
  return report;
}

std::string profile_text(const json& report) {
  std::string out;
  for (const json& row : report.at("workloads")) {
    for (const json& launch : row.value("launches", json::array())) {
      const json& figures = launch.at("figures");
      out += fmt::format("{}: {} grid {} block {}", row.at("id").get<std::string>(), launch.at("kernel").get<std::string>(),
                         launch.at("grid").get<std::string>(), launch.at("block").get<std::string>());
      if (figures.at("duration_us").is_number()) out += fmt::format(" {:.1f} us", figures["duration_us"].get<double>());
      out += "\n" + figures_text(figures);
    }
    const json raw = row.value("raw", json());
    if (raw.is_string()) out += fmt::format("  report: {}\n", raw.get<std::string>());
    if (!row.at("error").is_null()) continue;
    if (row.value("launches", json::array()).empty()) out += fmt::format("{}: no kernel is launched\n", row.at("id").get<std::string>());
  }
  const auto failed = report.value("failed", std::size_t{0}), all = report.at("workloads").size();
  return out + fmt::format("\nprofiled: {}/{} workload{} on {}\n", all - failed, all, all == 1 ? "" : "s", report.value("device", ""));
}

Result<> keep_raw_reports(json& report, const fs::path& folder) {
  for (json& row : report.at("workloads")) {
    const auto raw = row.find("raw");
    if (raw == row.end() || !raw->is_object()) continue;
    const std::string name = raw->value("name", "");
    const auto bytes = from_hex(raw->value("hex", ""));
    const bool plain = !name.empty() && name.size() < 200 && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
    });
    if (!plain || !bytes) return fail(ErrorKind::contract, "the raw report that was sent has no plain name, or is not whole");
    HONE_CHECK(make_dirs(folder));
    HONE_CHECK(write_file_atomic(folder / name, *bytes));
    *raw = (folder / name).string();
  }
  return {};
}

}  // namespace hone
