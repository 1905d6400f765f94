#include "profile/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace hone {
namespace {

using nlohmann::json;

constexpr std::string_view kShare = ".avg.pct_of_peak_sustained_elapsed", kActive = ".avg.pct_of_peak_sustained_active";
constexpr std::size_t kUnits = 6;

// Metrics by how their names begin; the first that fits.
constexpr std::pair<std::string_view, std::string_view> kUnitNames[] = {
    {"sm__pipe_tensor", "tensor pipe"},
    {"sm__inst_executed_pipe_tensor", "tensor pipe"},
    {"sm__pipe_fp64", "FP64 pipe"},
    {"sm__inst_executed_pipe_fp64", "FP64 pipe"},
    {"sm__pipe_fma", "FMA pipe"},
    {"sm__inst_executed_pipe_fma", "FMA pipe"},
    {"sm__pipe_alu", "ALU pipe"},
    {"sm__inst_executed_pipe_alu", "ALU pipe"},
    {"sm__pipe_xu", "XU pipe (conversions, transcendentals)"},
    {"sm__inst_executed_pipe_xu", "XU pipe (conversions, transcendentals)"},
    {"sm__inst_executed_pipe_lsu", "load/store pipe"},
    {"sm__inst_executed_pipe_tma", "TMA unit"},
    {"sm__inst_executed_pipe_uniform", "uniform pipe"},
    {"sm__inst_issued", "issue slots"},
    {"sm__issue_active", "issue slots"},
    {"sm__inst_executed.", "issue slots"},
    {"sm__mio", "MIO queue"},
    {"idc__", "constant cache"},
    {"l1tex__data_bank", "banks of L1 and shared memory"},
    {"l1tex__data_pipe", "data path of L1 and shared memory"},
    {"l1tex__", "L1"},
    {"lts__", "L2"},
    {"dram__", "DRAM"},
    {"fbpa__", "DRAM"},
};

std::string unit_of(std::string_view metric) {
  for (const auto& [begin, name] : kUnitNames)
    if (metric.starts_with(begin)) return std::string(name);
  return std::string(metric.substr(0, metric.find('.')));
}

std::optional<double> value_of(const LaunchMetrics& launch, std::string_view metric) {
  const auto found = launch.values.find(metric);
  return found == launch.values.end() ? std::nullopt : std::optional<double>(found->second);
}

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

// What the two throughputs are the highest of, as ncu lists it; else everything that is a share of a peak and no sum.
std::vector<std::string> unit_metrics(const LaunchMetrics& launch) {
  std::vector<std::string> out;
  for (const auto& [name, list] : launch.texts) {
    if (!name.starts_with("breakdown:")) continue;
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(list.find_first_of(",; ", begin), list.size());
      if (end > begin) out.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::erase_if(out, [&](const std::string& name) { return !value_of(launch, name); });
  if (!out.empty()) return out;
  for (const auto& [name, value] : launch.values) {
    const bool sum = name.find("throughput") != std::string::npos && !name.starts_with("dram__");
    const bool busy =
        name.find("cycles_active") != std::string::npos && name.find("_pipe_") == std::string::npos && !name.starts_with("dram__");
    if (name.ends_with(kShare) && !sum && !busy && name.find("warps_active") == std::string::npos) out.push_back(name);
  }
  return out;
}

json units_of(const LaunchMetrics& launch) {
  std::vector<std::pair<double, std::string>> shares;
  for (std::string& name : unit_metrics(launch)) {
    const double share = *value_of(launch, name);
    shares.emplace_back(share, std::move(name));
  }
  std::sort(shares.begin(), shares.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  json out = json::array();
  for (const auto& [share, name] : shares) {
    const std::string unit = unit_of(name);
    const bool told = std::any_of(out.begin(), out.end(), [&](const json& each) { return each["unit"] == unit; });
    if (!told && out.size() < kUnits) out.push_back({{"unit", unit}, {"metric", name}, {"pct", share}});
  }
  return out;
}

// The busiest of the tensor pipe's counters: chips name its formats differently.
std::optional<double> tensor_share(const LaunchMetrics& launch) {
  std::optional<double> out;
  for (const auto& [name, value] : launch.values)
    if ((name.starts_with("sm__pipe_tensor") || name.starts_with("sm__inst_executed_pipe_tensor")) &&
        (name.ends_with(kShare) || name.ends_with(kActive)))
      out = std::max(out.value_or(0), value);
  return out;
}

std::optional<double> bank_conflicts(const LaunchMetrics& launch) {
  constexpr std::string_view kConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared";
  if (const auto all = value_of(launch, std::string(kConflicts) + ".sum")) return all;
  std::optional<double> out;
  for (const auto& [name, value] : launch.values)
    if (name.starts_with(kConflicts) && name.ends_with(".sum")) out = out.value_or(0) + value;
  return out;
}

json stalls_of(const LaunchMetrics& launch) {
  constexpr std::string_view kBegin = "smsp__average_warps_issue_stalled_", kEnd = "_per_issue_active.ratio";
  std::vector<std::pair<double, std::string>> stalls;
  for (const auto& [name, value] : launch.values) {
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) continue;
    const std::string reason = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
    if (reason != "selected" && !reason.ends_with("_not_issued") && value > 0) stalls.emplace_back(value, reason);
  }
  std::sort(stalls.begin(), stalls.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  json out = json::array();
  for (const auto& [cycles, reason] : stalls) out.push_back({{"reason", reason}, {"cycles", cycles}});
  return out;
}

}  // namespace

json figures_of(const LaunchMetrics& launch) {
  const auto value = [&](std::string_view metric) { return value_of(launch, metric); };
  const auto share = [&](std::string_view metric) { return number(value(std::string(metric) + std::string(kShare))); };
  const auto duration = value("gpu__time_duration.sum");
  json units = units_of(launch);
  json out = {{"duration_us", number(duration ? std::optional(*duration * 1e-3) : std::nullopt)},
              {"compute_pct", share("sm__throughput")},
              {"memory_pct", share("gpu__compute_memory_throughput")},
              {"limiting", units.empty() ? json() : units.front()},
              {"tensor_pct", number(tensor_share(launch))},
              {"dram_pct",
               value(std::string("dram__throughput") + std::string(kShare)) ? share("dram__throughput") : share("gpu__dram_throughput")},
              {"l2_hit_pct", number(value("lts__t_sector_hit_rate.pct"))},
              {"l1_hit_pct", number(value("l1tex__t_sector_hit_rate.pct"))},
              {"bank_conflicts", number(bank_conflicts(launch))},
              {"occupancy_pct", number(value(std::string("sm__warps_active") + std::string(kActive)))},
              {"occupancy_limit_pct", number(value("sm__maximum_warps_per_active_cycle_pct"))},
              {"registers", number(value("launch__registers_per_thread"))},
              {"stalls", stalls_of(launch)}};
  out["units"] = std::move(units);
  return out;
}

std::string figures_text(const json& figures) {
  std::string out, line;
  const auto end = [&] {
    if (!line.empty()) out += "  " + line + "\n";
    line.clear();
  };
  const auto say = [&](std::string text) { line += (line.empty() ? "" : ", ") + std::move(text); };
  const auto known = [&](const char* key) { return figures.at(key).is_number(); };
  const auto number_at = [&](const char* key) { return figures.at(key).get<double>(); };
  if (figures.at("limiting").is_object())
    say(fmt::format("limited by {}: {:.1f}% of its peak", figures["limiting"].at("unit").get<std::string>(),
                    figures["limiting"].at("pct").get<double>()));
  if (known("compute_pct")) say(fmt::format("compute {:.1f}%", number_at("compute_pct")));
  if (known("memory_pct")) say(fmt::format("memory {:.1f}%", number_at("memory_pct")));
  end();
  for (const json& unit : figures.at("units"))
    say(fmt::format("{} {:.1f}%", unit.at("unit").get<std::string>(), unit.at("pct").get<double>()));
  if (!line.empty()) line = "units: " + line;
  end();
  std::size_t shown = 0;
  for (const json& stall : figures.at("stalls"))
    if (shown++ < 5) say(fmt::format("{} {:.2f}", stall.at("reason").get<std::string>(), stall.at("cycles").get<double>()));
  if (!line.empty()) line = "stalls, cycles an instruction: " + line;
  end();
  for (const auto& [key, name] : {std::pair{"tensor_pct", "tensor pipe"}, std::pair{"dram_pct", "DRAM"}, std::pair{"l2_hit_pct", "L2 hits"},
                                  std::pair{"l1_hit_pct", "L1 hits"}})
    if (known(key)) say(fmt::format("{} {:.1f}%", name, number_at(key)));
  if (known("bank_conflicts")) say(fmt::format("{:.0f} bank conflicts", number_at("bank_conflicts")));
  end();
  if (known("occupancy_pct")) {
    say(fmt::format("occupancy {:.1f}%", number_at("occupancy_pct")));
    if (known("occupancy_limit_pct")) line += fmt::format(" of {:.1f}% possible", number_at("occupancy_limit_pct"));
  }
  if (known("registers")) say(fmt::format("{:.0f} registers", number_at("registers")));
  end();
  return out;
}

}  // namespace hone
