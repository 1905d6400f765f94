#include "flow/watch.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "flow/brief.h"
#include "run/report.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kExperiments = 6, kEntries = 4, kWorkloads = 12, kEvents = 5;
constexpr int kCurveLines = 7;

// One line of what agents and compilers wrote, at most `columns` characters.
std::string fitted(const std::string& text, int columns) {
  std::string out;
  const bool whole = is_utf8(text);
  int used = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    std::size_t length = 1;
    if (whole && byte >= 0xc0) length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (used == columns) break;
    if (byte < 0x20 || byte == 0x7f) out += ' ';
    else if (byte >= 0x80 && !whole) out += '?';
    else out += text.substr(i, length);
    i += length;
    ++used;
  }
  return out;
}

std::string bar(double ratio, double most, int width) {
  const int filled = most > 0 ? static_cast<int>(std::lround(std::clamp(ratio / most, 0.0, 1.0) * width)) : 0;
  return std::string(static_cast<std::size_t>(filled), '=') + std::string(static_cast<std::size_t>(width - filled), ' ');
}

std::string agent_line(const json& agent) {
  std::string text = fmt::format("  {:<15} {:<22} {}", agent.value("role", ""), agent.value("agent", ""), agent.value("state", ""));
  if (agent.contains("turn_s")) text += fmt::format(" since {}, silent for {}", format_duration(agent.value("turn_s", 0.0)), format_duration(agent.value("silent_s", 0.0)));
  if (const auto last = agent.find("last"); last != agent.end() && last->is_object()) {
    text += ": " + last->value("kind", "");
    if (last->contains("tool")) text += " " + last->value("tool", "");
    if (const std::string said = last->value("text", ""); !said.empty()) text += " \"" + said + "\"";
  }
  return text;
}

}  // namespace

std::vector<std::string> curve_lines(const std::vector<Improvement>& curve, double seconds, const std::optional<double>& target, int columns, int lines) {
  if (curve.empty() || lines < 2 || columns < 24) return {"  no experiment passed every workload yet"};
  double low = std::min(1.0, curve.front().geomean), high = std::max(1.0, curve.back().geomean);
  if (target) high = std::max(high, *target);
  if (high - low < 1e-6) high = low + 0.1;
  constexpr int kLabel = 10;
  const int width = columns - kLabel - 1;
  std::vector<std::string> canvas(static_cast<std::size_t>(lines), std::string(static_cast<std::size_t>(width), ' '));
  const auto level = [&](double ratio) { return static_cast<std::size_t>(std::clamp(static_cast<int>(std::lround((high - ratio) / (high - low) * (lines - 1))), 0, lines - 1)); };
  if (target)
    for (char& c : canvas[level(*target)]) c = '.';
  for (int column = 0; column < width; ++column) {
    const double at = seconds * (column + 1) / width;
    double best = 0;
    for (const Improvement& each : curve)
      if (each.recorded->elapsed_s <= at) best = each.geomean;
    if (best > 0) canvas[level(best)][static_cast<std::size_t>(column)] = '#';
  }
  std::vector<std::string> out;
  for (int i = 0; i < lines; ++i)
    out.push_back(fmt::format("{:>8.3f}x |{}", high - (high - low) * i / (lines - 1), canvas[static_cast<std::size_t>(i)]));
  const std::string end = format_duration(seconds);
  out.push_back(fmt::format("{:>{}}0 s{:>{}}", "", kLabel + 1, end, std::max(1, width - 3)));
  return out;
}

std::string watch_text(const WatchFacts& facts, int columns) {
  const Summary& summary = facts.summary;
  const RunProgress& progress = summary.progress;
  const double elapsed = facts.live.is_object() ? facts.live.value("elapsed_s", progress.elapsed_s) : progress.elapsed_s;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("run {} · task {} · {}{}", summary.run.manifest.name, summary.run.manifest.task, state_line(summary), progress.turns.paused ? ", paused" : ""));
  lines.push_back("spent " + budget_text(progress.budget, progress, elapsed));
  if (progress.target) lines.push_back(fmt::format("target {:.4g}x, measured twice by the launcher on a retained candidate", *progress.target));

  lines.push_back("");
  lines.push_back("best so far");
  const auto curve = best_so_far(progress);
  for (std::string& each : curve_lines(curve, std::max(elapsed, 1e-3), progress.target, columns, kCurveLines)) lines.push_back(std::move(each));

  lines.push_back("");
  lines.push_back(fmt::format("agents{}", facts.live.is_object() ? fmt::format(" ({}, {} in the queue)", facts.live.value("state", ""), facts.live.value("queue", 0)) : ": no launcher works"));
  if (facts.live.is_object())
    for (const json& each : facts.live.value("agents", json::array())) lines.push_back(agent_line(each));
  for (const Said& each : progress.turns.waiting_steers()) lines.push_back(fmt::format("  waiting for the next turn: \"{}\" (row {})", each.text, each.row));
  for (const Said& each : progress.turns.restored) lines.push_back(fmt::format("  restored {}: {} (row {})", each.by, each.text, each.row));

  const auto all = experiments_of(progress);
  lines.push_back("");
  lines.push_back(fmt::format("experiments ({})", all.size()));
  for (std::size_t i = all.size() - std::min(all.size(), kExperiments); i < all.size(); ++i) {
    const Recorded& each = *all[i].recorded;
    lines.push_back(fmt::format("  row {:<5} {:<14} {} ({}): {}{}", each.row, each.by, each.experiment.candidate, params_text(each.experiment.params), verdict_text(each.experiment),
                                each.experiment.decision.empty() ? "" : " " + each.experiment.decision));
  }

  lines.push_back("");
  lines.push_back(fmt::format("frontier ({})", summary.frontier.size()));
  for (std::size_t i = 0; i < std::min(summary.frontier.size(), kEntries); ++i) {
    const FrontierEntry& each = summary.frontier[i];
    lines.push_back(fmt::format("  {:<28} {}  family {}, row {}", each.name, ratio_text(each.geomean, each.geomean_ci), each.family, each.row));
  }
  if (!summary.frontier.empty()) {
    const FrontierEntry& front = summary.frontier.front();
    double most = 1;
    for (const auto& [id, ratio] : front.ratios) most = std::max(most, ratio);
    lines.push_back("");
    lines.push_back(fmt::format("workloads of {} (row {})", front.name, front.row));
    std::size_t shown = 0;
    for (const auto& [id, ratio] : front.ratios) {
      if (++shown > kWorkloads) {
        lines.push_back(fmt::format("  and {} more", front.ratios.size() - kWorkloads));
        break;
      }
      lines.push_back(fmt::format("  {:<24} {:>8.3f}x |{}|{}", id, ratio, bar(ratio, most, std::max(8, columns - 50)), ratio < 1 ? " slower" : ""));
    }
  }
  if (!facts.events.empty()) {
    lines.push_back("");
    lines.push_back("trace");
    for (std::size_t i = facts.events.size() - std::min(facts.events.size(), kEvents); i < facts.events.size(); ++i) {
      const json& each = facts.events[i];
      const auto text = [&](const char* key) { return each.contains(key) && each[key].is_string() ? each[key].get<std::string>() : std::string(); };
      lines.push_back(fmt::format("  {} {:<14} {:<12} {}", text("time").size() > 19 ? text("time").substr(11, 8) : std::string(), text("role"), text("kind"), text("text") + text("cause")));
    }
  }
  std::string out;
  for (const std::string& each : lines) out += fitted(each, columns) + "\n";
  return out;
}

json watch_json(const WatchFacts& facts) {
  json out = report_json(facts.summary);
  out["schema"] = "hone.watch/1";
  out["live"] = facts.live;
  out["events"] = facts.events;
  return out;
}

}  // namespace hone
