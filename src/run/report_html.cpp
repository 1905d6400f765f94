#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "run/report.h"

namespace hone {
namespace {

constexpr double kWidth = 720, kHeight = 260, kLeft = 56, kRight = 16, kTop = 16, kBottom = 36;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out;
}

std::string row_link(std::int64_t row) { return fmt::format("<a href=\"#row-{}\">row {}</a>", row, row); }

class Table {
 public:
  Table(std::string& out, const std::vector<std::string>& heads) : out_(out) {
    out_ += "<table><thead><tr>";
    for (const std::string& each : heads) out_ += "<th>" + escaped(each) + "</th>";
    out_ += "</tr></thead><tbody>\n";
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { out_ += "</tbody></table>\n"; }
  // Cells are HTML already.
  void row(const std::vector<std::string>& cells, const std::string& attributes = {}) {
    out_ += "<tr" + attributes + ">";
    for (const std::string& each : cells) out_ += "<td>" + each + "</td>";
    out_ += "</tr>\n";
  }

 private:
  std::string& out_;
};

// Steps of 1, 2 or 5 times a power of ten, about four of them.
double step_of(double span) {
  const double raw = std::max(span, 1e-9) / 4, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double each : {1.0, 2.0, 5.0})
    if (raw <= each * power) return each * power;
  return 10 * power;
}

}  // namespace

std::string curve_svg(const Summary& summary) {
  const auto curve = best_so_far(summary.progress);
  std::string svg = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
                                "font-family=\"sans-serif\" font-size=\"11\">\n<title>best speedup so far</title>\n"
                                "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
                                kWidth, kHeight);
  if (curve.empty()) return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">no experiment passed every workload yet</text>\n</svg>\n", kWidth / 2, kHeight / 2);
  double low = 1, high = std::max(1.0, curve.back().geomean);
  for (const Improvement& each : curve) low = std::min(low, each.geomean);
  if (summary.progress.target) high = std::max(high, *summary.progress.target);
  const double step = step_of(high - low);
  low = std::floor(low / step) * step;
  high = std::ceil(high / step) * step;
  if (high <= low) high = low + step;
  const double seconds = std::max(summary.progress.elapsed_s, 1e-3);
  const auto x = [&](double s) { return kLeft + (kWidth - kLeft - kRight) * std::min(1.0, s / seconds); };
  const auto y = [&](double ratio) { return kHeight - kBottom - (kHeight - kTop - kBottom) * (ratio - low) / (high - low); };
  for (int i = 0; low + i * step <= high + step / 2 && i < 64; ++i) {
    const double ratio = low + i * step;
    svg += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/><text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}x</text>\n", kLeft,
                       kWidth - kRight, y(ratio), y(ratio), kLeft - 6, y(ratio) + 4, ratio);
  }
  for (int i = 0; i <= 4; ++i)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x(seconds * i / 4), kHeight - kBottom + 18, i == 0 ? "start" : i == 4 ? "end" : "middle",
                       format_duration(seconds * i / 4));
  if (summary.progress.target)
    svg += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#a00\" stroke-dasharray=\"5 4\"/><text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#a00\">target {:.4g}x</text>\n",
                       kLeft, kWidth - kRight, y(*summary.progress.target), y(*summary.progress.target), kLeft + 6, y(*summary.progress.target) - 4, *summary.progress.target);
  std::string points = fmt::format("M{:.1f},{:.1f}", x(curve.front().recorded->elapsed_s), y(curve.front().geomean)), dots;
  for (const Improvement& each : curve) {
    points += fmt::format(" H{:.1f} V{:.1f}", x(each.recorded->elapsed_s), y(each.geomean));
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#046\"><title>{:.3f}x, {}, row {}</title></circle>\n", x(each.recorded->elapsed_s), y(each.geomean), each.geomean,
                        escaped(each.recorded->experiment.candidate), each.recorded->row);
  }
  return svg + fmt::format("<path d=\"{} H{:.1f}\" fill=\"none\" stroke=\"#046\" stroke-width=\"2\"/>\n{}</svg>\n", points, x(seconds), dots);
}

std::string report_html(const Summary& summary) {
  const RunProgress& progress = summary.progress;
  const Manifest& manifest = summary.run.manifest;
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Run {0}</title>\n<style>body{{font:14px sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}}"
      "table{{border-collapse:collapse;margin:.5em 0}}td,th{{border:1px solid #ccc;padding:.2em .6em;text-align:left;vertical-align:top}}th{{background:#f4f4f4}}"
      ".slow{{color:#a00}}tr:target{{background:#ffc}}</style></head><body>\n<h1>Run {0}: {1}</h1>\n",
      escaped(manifest.name), escaped(manifest.task));
  out += fmt::format("<p>State: {}<br>Spent: {}", escaped(state_line(summary)), escaped(spent_text(progress)));
  if (progress.started) out += fmt::format("<br>Agents: {} ({}, {})", escaped(progress.agent), escaped(progress.flow), row_link(progress.started->seq));
  if (progress.target) out += fmt::format("<br>Target: {:.4g}x", *progress.target);
  out += fmt::format("<br>Task {}, judge {} ({})</p>\n", manifest.task_sha256.substr(0, 12), escaped(manifest.judge_version), manifest.judge_sha256.substr(0, 12));

  out += "<h2>Best so far</h2>\n" + curve_svg(summary);
  if (const auto curve = best_so_far(progress); !curve.empty()) {
    Table table(out, {"row", "after", "geomean", "candidate", "parameters", "by"});
    for (const Improvement& each : curve)
      table.row({row_link(each.recorded->row), format_duration(each.recorded->elapsed_s), ratio_text(each.geomean, each.recorded->experiment.geomean_ci),
                 escaped(each.recorded->experiment.candidate), escaped(params_text(each.recorded->experiment.params)), escaped(each.recorded->by)});
  }

  out += "<h2>Retained</h2>\n";
  if (summary.frontier.empty()) out += "<p>Nothing.</p>\n";
  else {
    std::vector<std::string> heads = {"name", "geomean", "family", "receipt", "row"};
    std::set<std::string> ids;
    for (const FrontierEntry& each : summary.frontier)
      for (const auto& [id, ratio] : each.ratios) ids.insert(id);
    heads.insert(heads.end(), ids.begin(), ids.end());
    Table table(out, heads);
    for (const FrontierEntry& each : summary.frontier) {
      std::vector<std::string> cells = {escaped(each.name), ratio_text(each.geomean, each.geomean_ci), escaped(each.family), escaped(each.receipt.substr(0, 12)), row_link(each.row)};
      for (const std::string& id : ids) {
        const auto found = each.ratios.find(id);
        cells.push_back(found == each.ratios.end() ? "-" : fmt::format("<span{}>{:.3f}x</span>", found->second < 1 ? " class=\"slow\"" : "", found->second));
      }
      table.row(cells);
    }
  }

  if (!progress.turns.all.empty()) {
    out += "<h2>Turns</h2>\n";
    Table table(out, {"turn", "role", "agent", "ended", "reason", "experiments", "tokens", "cost", "rows"});
    for (const TurnRecord& each : progress.turns.all) {
      const auto tokens = each.spent.tokens();
      table.row({fmt::format("{}{}", each.turn, each.attempt > 1 ? fmt::format(" ({})", each.attempt) : ""), escaped(each.role), escaped(each.agent),
                 escaped(each.ended_row == 0 ? "not ended" : each.cause), escaped(each.reason), fmt::format("{}{}", each.experiments, each.improved ? ", faster one retained" : ""),
                 tokens ? std::to_string(*tokens) : "unknown", each.spent.cost_usd ? fmt::format("{:.4g}", *each.spent.cost_usd) : "unknown",
                 row_link(each.started_row) + (each.ended_row > 0 ? ", " + row_link(each.ended_row) : "")});
    }
  }

  out += "<h2>Experiments</h2>\n";
  {
    std::vector<std::string> heads = {"row", "kind", "by", "candidate", "parameters", "verdict", "decision", "by workload", "receipt"};
    Table table(out, heads);
    for (const Experimented& each : experiments_of(progress)) {
      const Experiment& experiment = each.recorded->experiment;
      std::string ratios;
      for (const auto& [id, result] : experiment.workloads)
        ratios += escaped(id) + " " + (result.ratio ? fmt::format("<span{}>{:.3f}x</span>", *result.ratio < 1 ? " class=\"slow\"" : "", *result.ratio) : escaped(result.verdict)) + "<br>";
      table.row({std::to_string(each.recorded->row), each.kind, escaped(each.recorded->by), escaped(experiment.candidate), escaped(params_text(experiment.params)),
                 escaped(verdict_text(experiment)), experiment.decision.empty() ? "-" : experiment.decision, ratios, escaped(experiment.receipt.substr(0, 12))},
                fmt::format(" id=\"row-{}\"", each.recorded->row));
    }
  }

  out += "<h2>Other rows</h2>\n";
  {
    Table table(out, {"row", "time", "kind", "what"});
    for (const LedgerRow& row : summary.ledger.rows) {
      if (row.kind == "evaluation" || row.kind == "remeasure" || row.kind == "evaluation_started") continue;
      std::string what;
      for (const char* key : {"turn", "role", "agent", "name", "reason", "cause", "path", "what", "text", "why", "by"})
        if (const auto found = row.data.find(key); found != row.data.end() && (found->is_string() || found->is_number()))
          what += (what.empty() ? "" : ", ") + std::string(key) + ": " + (found->is_string() ? found->get<std::string>() : found->dump()).substr(0, 300);
      table.row({std::to_string(row.seq), escaped(row.time), escaped(row.kind), escaped(what)}, fmt::format(" id=\"row-{}\"", row.seq));
    }
  }
  for (const Error& fault : summary.ledger.faults) out += fmt::format("<p class=\"slow\">{}</p>\n", escaped(to_text(fault)));
  return out + "</body></html>\n";
}

}  // namespace hone
