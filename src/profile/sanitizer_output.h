// compute-sanitizer's log, read: lines that begin with "=========". Names in it come from a candidate's code and its printf
// may stand between the lines, so the text is hostile.
#ifndef HONE_PROFILE_SANITIZER_OUTPUT_H
#define HONE_PROFILE_SANITIZER_OUTPUT_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/finding.h"

namespace hone {

struct SanitizerLog {
  std::vector<Finding> findings;      // merged; at most 1000
  std::optional<std::size_t> errors;  // of the summary, which counts those that are not printed, too
  std::string fault;                  // why the tool could not do its work, or empty
};

// `tool`: memcheck, racecheck, synccheck, initcheck. Without a summary the tool was ended early.
SanitizerLog read_sanitizer_log(const std::string& tool, std::string_view text);

}  // namespace hone

#endif
