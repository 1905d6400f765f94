#include "profile/ncu_output.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace hone {
namespace {

constexpr std::size_t kMostColumns = 20'000, kMostLaunches = 1000;
constexpr std::string_view kHeader = "\"ID\",";

// One record of a table (RFC 4180), taken off the text.
std::vector<std::string> take_record(std::string_view& text) {
  std::vector<std::string> fields;
  std::string field;
  bool quoted = false;
  std::size_t i = 0;
  const auto end_field = [&] {
    if (fields.size() < kMostColumns) fields.push_back(std::move(field));
    field.clear();
  };
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"')
        field += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      end_field();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      field += c;
    }
  }
  end_field();
  text.remove_prefix(std::min(i + 1, text.size()));
  return fields;
}

// "1,234.5", as some locales print it.
std::optional<double> number_of(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  if (text.empty() || text.size() > 64) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Of times to nanoseconds, where --print-units base was not understood; others are base units already.
double scale_of(std::string_view unit) {
  if (unit == "us" || unit == "usecond") return 1e3;
  if (unit == "ms" || unit == "msecond") return 1e6;
  if (unit == "s" || unit == "second") return 1e9;
  return 1;
}

struct Known {
  std::string_view words;
  ErrorKind kind;
  std::string_view hint;
};
constexpr Known kKnown[] = {
    {"ERR_NVGPUCTRPERM", ErrorKind::environment,
     "this host keeps performance counters to administrators: its driver wants NVreg_RestrictProfilingToAdminUsers=0, or a container "
     "CAP_SYS_ADMIN; `hone bench` needs none"},
    {"not supported on this", ErrorKind::environment,
     "this GPU, or its virtualisation, gives no performance counters; use a host that does"},
    {"driver resource was unavailable", ErrorKind::environment,
     "something else holds the counters: end other profilers, or pause DCGM's profiling on that host"},
    {"InterprocessLockFailed", ErrorKind::environment,
     "another user's ncu left its lock in the folder for temporary files: remove nsight-compute-lock there, or set TMPDIR"},
    {"LibraryNotLoaded", ErrorKind::environment, "ncu does not find the driver's library: look at nvidia-smi"},
    {"not compatible", ErrorKind::environment, "install a driver and an Nsight Compute that fit each other"},
    {"Failed to find section", ErrorKind::environment,
     "this ncu is too old, or its section files are missing: install Nsight Compute 2023 or later"},
};

}  // namespace

Result<std::vector<LaunchMetrics>> read_ncu_csv(std::string_view text) {
  while (!text.empty() && !text.starts_with(kHeader)) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  if (text.empty()) return fail(ErrorKind::device, "ncu printed no table of metrics");
  const std::vector<std::string> names = take_record(text);
  std::vector<std::string> units;
  std::vector<LaunchMetrics> out;
  while (!text.empty() && out.size() < kMostLaunches) {
    const std::vector<std::string> fields = take_record(text);
    if (fields.size() != names.size()) continue;
    if (fields.front().empty()) {  // the row of units
      if (units.empty()) units = fields;
      continue;
    }
    LaunchMetrics launch;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "Kernel Name")
        launch.kernel = fields[i];
      else if (names[i] == "Grid Size")
        launch.grid = fields[i];
      else if (names[i] == "Block Size")
        launch.block = fields[i];
      else if (const auto value = number_of(fields[i]))
        launch.values[names[i]] = *value * (units.empty() ? 1 : scale_of(units[i]));
      else if (!fields[i].empty())
        launch.texts[names[i]] = fields[i];
    }
    out.push_back(std::move(launch));
  }
  return out;
}

Error ncu_fault(std::string_view text) {
  constexpr std::string_view kMark = "==ERROR== ";
  std::string said;
  for (std::size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
    const std::string_view line = text.substr(at + kMark.size(), text.find('\n', at) - at - kMark.size());
    for (const Known& known : kKnown)
      if (line.find(known.words) != std::string_view::npos)
        return make_error(known.kind, "ncu cannot profile here: {}", line.substr(0, 300)).with_hint(std::string(known.hint));
    if (said.empty()) said = std::string(line.substr(0, 300));
  }
  if (said.empty()) return make_error(ErrorKind::device, "ncu ended without a profile and does not say why");
  return make_error(ErrorKind::device, "ncu did not profile: {}", said);
}

}  // namespace hone
