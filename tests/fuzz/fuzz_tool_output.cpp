// What ncu and compute-sanitizer print, with names and words of a candidate in it: findings and figures of bounded size.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "profile/figures.h"
#include "profile/ncu_output.h"
#include "profile/sanitizer_output.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* tool : {"memcheck", "racecheck", "synccheck", "initcheck"}) {
    const hone::SanitizerLog log = hone::read_sanitizer_log(tool, text);
    if (log.findings.size() > 1000) std::abort();
    for (const hone::Finding& each : log.findings) {
      if (each.line < 0 || each.kind.empty() || each.severity.empty() || each.count == 0) std::abort();
      if (hone::finding_text(nlohmann::json(each)).empty()) std::abort();
    }
  }
  if (const auto launches = hone::read_ncu_csv(text))
    for (const hone::LaunchMetrics& each : *launches) (void)hone::figures_text(hone::figures_of(each));
  if (hone::ncu_fault(text).message.empty()) std::abort();
  return 0;
}
