#include "profile/sanitize.h"

#include <algorithm>

#include "base/text.h"
#include "profile/sanitizer_output.h"
#include "profile/tool.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestLog = std::size_t{32} << 20;

std::uint64_t bytes_of(const Workload& workload) {
  std::uint64_t out = 0;
  for (const TensorShape& tensor : workload.tensors) out += tensor.bytes();
  return out;
}

std::vector<std::string> sanitizer(const fs::path& program, const std::string& tool, const fs::path& log) {
  // What called a launch is always hone-gpu.
  std::vector<std::string> out = {program.string(), "--tool", tool,         "--show-backtrace", "device", "--strip-paths", "no",
                                  "--print-limit",  "1000",   "--log-file", log.string()};
  // Errors of the programming interface are told by the process itself; and no tensor begins where another one ends.
  if (tool == "memcheck") out.insert(out.end(), {"--report-api-errors", "no", "--padding", "512"});
  return out;
}

// What one tool says of one workload.
Result<json> check_with(const fs::path& program, const std::string& tool, const WatchSpec& spec, const fs::path& folder,
                        const WatchRequest& request, Bench bench, json& findings) {
  HONE_TRY(const WatchedCommand command, bench.device.watched(spec, folder));
  const fs::path file = folder / (tool + ".log");
  HONE_TRY(const Watched watched, watch(sanitizer(program, tool, file), command, folder, request));
  const auto text = read_file(file, kLargestLog);
  const SanitizerLog log = read_sanitizer_log(tool, text ? *text : watched.said);
  // A process that a finding ended is no failure of its own; one that fails without any is.
  if (log.findings.empty()) {
    if (watched.fault && (watched.answered || !watched.ended)) return fail(*watched.fault);
    if (!log.fault.empty()) return fail(make_error(ErrorKind::device, "{}: {}", tool, log.fault));
    if (watched.fault) return fail(*watched.fault);
    if (!log.errors)
      return fail(make_error(ErrorKind::device, "{} ended without its summary", tool).with_note(watched.said.substr(0, 2000)));
    if (*log.errors > 0)
      return fail(make_error(ErrorKind::device, "{} counts {} errors, of which none can be read", tool, *log.errors)
                      .with_note(text ? text->substr(0, 2000) : ""));
  }
  for (const Finding& each : log.findings) findings.push_back(each);
  return json{{"tool", tool},
              {"seconds", watched.seconds},
              {"findings", log.findings.size()},
              {"errors", log.errors ? json(*log.errors) : json()},
              {"incomplete", watched.ended ? json() : json(watched.fault->message)}};
}

}  // namespace

const std::vector<std::string>& sanitizer_tools() {
  static const std::vector<std::string> tools = {"memcheck", "racecheck", "synccheck", "initcheck"};
  return tools;
}

Result<json> sanitize_report(const Task& task, const Candidate& candidate, const std::vector<std::string>& wanted,
                             const WatchRequest& request, Bench bench) {
  const std::vector<std::string>& known = sanitizer_tools();
  for (const std::string& tool : wanted)
    if (std::find(known.begin(), known.end(), tool) == known.end())
      return fail(make_error(ErrorKind::usage, "compute-sanitizer has no tool {}", tool)
                      .with_hint(fmt::format("it has {}", fmt::join(known, ", "))));
  HONE_CHECK(can_watch(task, "compute-sanitizer"));
  HONE_TRY(const fs::path program, find_vendor_tool("compute-sanitizer"));
  std::size_t count = 0;
  const auto each = [&](const Workload& workload, const WatchSpec& spec, const fs::path& folder) -> Result<json> {
    json tools = json::array(), findings = json::array();
    for (const std::string& tool : wanted.empty() ? known : wanted) {
      if (request.progress) request.progress(fmt::format("{}: workload {}: {}", candidate.name, workload.id, tool));
      HONE_TRY(json told, check_with(program, tool, spec, folder, request, bench, findings));
      tools.push_back(std::move(told));
    }
    count += findings.size();
    return json{{"tools", std::move(tools)}, {"findings", std::move(findings)}};
  };
  const Workload& smallest = *std::min_element(task.workloads.begin(), task.workloads.end(),
                                               [](const Workload& a, const Workload& b) { return bytes_of(a) < bytes_of(b); });
  HONE_TRY(json report, watch_report(task, candidate, request, smallest, bench, each));
  report["schema"] = "hone.sanitize/1";
  report["tool"] = program.string();
  report["findings"] = count;
  return report;
}

std::string sanitize_text(const json& report) {
  std::string out;
  for (const json& row : report.at("workloads")) {
    for (const json& tool : row.value("tools", json::array())) {
      const auto findings = tool.at("findings").get<std::size_t>();
      const json incomplete = tool.value("incomplete", json());
      out += fmt::format("{}  {:<9}  {}  {}{}\n", row.at("id").get<std::string>(), tool.at("tool").get<std::string>(),
                         findings == 0 ? "clean" : fmt::format("{} finding{}", findings, findings == 1 ? "" : "s"),
                         format_duration(tool.at("seconds").get<double>()),
                         incomplete.is_string() ? "  incomplete: " + incomplete.get<std::string>() : "");
    }
    for (const json& finding : row.value("findings", json::array())) out += finding_text(finding);
  }
  const auto failed = report.value("failed", std::size_t{0}), all = report.at("workloads").size(),
             findings = report.value("findings", std::size_t{0});
  return out + fmt::format("\nsanitized: {}/{} workload{} on {}, {}\n", all - failed, all, all == 1 ? "" : "s", report.value("device", ""),
                           findings == 0 ? "no finding" : fmt::format("{} finding{}", findings, findings == 1 ? "" : "s"));
}

}  // namespace hone
