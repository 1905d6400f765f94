// What a candidate's kernels are made of: resources, instruction mix, instructions of each source line, PTX and machine code.
#ifndef HONE_INSPECT_INSPECT_H
#define HONE_INSPECT_INSPECT_H

#include <string>

#include "inspect/compile.h"

namespace hone {

struct InspectRequest {
  bool ptx = false, code = false;      // the listings themselves; counts are always there
};

// The report of compile_report with schema hone.inspect/1; each module has besides:
//   from: "sass", "ptx" or "x86" (what was counted), tool: "nvdisasm 13.0.85" or null
//   kernels: those that a launch names [{kernel, symbol, workloads, instructions, mix {class: count},
//     lines [{file, line, instructions, text}], most instructions first}]
//   ptx, code: the listings asked for, else absent
// skipped: what this machine lacks, one text each.
Result<nlohmann::json> inspect_report(const Task& task, const Candidate& candidate, const Compiled& compiled,
                                      const InspectRequest& request, Bench bench);
// For people: resources, mix and the `lines` hottest lines of each kernel.
std::string inspect_text(const nlohmann::json& report, std::size_t lines = 10);

}  // namespace hone

#endif
