// What ncu prints: the raw page of a report as CSV, and why it did not profile.
#ifndef HONE_PROFILE_NCU_OUTPUT_H
#define HONE_PROFILE_NCU_OUTPUT_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

// One profiled launch. Values are in base units (ns, bytes, cycles, %).
struct LaunchMetrics {
  std::string kernel, grid, block;                        // mangled; "(132, 1, 1)"
  std::map<std::string, double, std::less<>> values;      // by metric; what is no number is left out
  std::map<std::string, std::string, std::less<>> texts;  // the others: "breakdown:..." lists metrics
};

// `ncu --import FILE --csv --page raw --print-units base --print-kernel-base mangled`. Lines before the header are ncu's own
// talk. Kernel names are a candidate's: quoted fields may hold anything. Kind device when there is no table.
Result<std::vector<LaunchMetrics>> read_ncu_csv(std::string_view text);

// The first "==ERROR==" of its output as a typed error that says what to do; kind device when it says nothing.
Error ncu_fault(std::string_view text);

}  // namespace hone

#endif
