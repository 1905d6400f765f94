// What a compiler said, as a located error: g++, clang++, nvcc's front end and ptxas. Compiler output is hostile input: a candidate writes
// into it with #pragma message, #error and file names of #line.
#ifndef HONE_TOOLCHAIN_DIAGNOSTICS_H
#define HONE_TOOLCHAIN_DIAGNOSTICS_H

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

// The #line name of the generated part that instantiates kernels; line N is instantiate[N - 1].
inline constexpr std::string_view kKernelNames = "<kernel names>";
// Candidates' own folder for generated sources; hidden files never come from a candidate.
inline constexpr std::string_view kGenerated = ".hone/";

struct CompilerMessages {
  std::string text;                   // stderr
  std::vector<std::string> strip;     // folder prefixes, with "/" at the end, that a candidate does not know
  std::vector<std::string> kernels;   // CompileRequest::instantiate
  std::string entry;                  // "kernel.cpp"
  std::string ptx = {};               // what ptxas was given: its line numbers become places of the source
};

// Kind compile at the first error, or kernel_name when that lies in the generated part. At most 20
// further lines and 8 KiB of notes.
Error compile_error(const CompilerMessages& messages);
// The place of the first message of any severity.
Place first_place(const CompilerMessages& messages);
// The whole text with paths as the candidate knows them, bounded to 8 KiB.
std::string readable_log(const CompilerMessages& messages);

}  // namespace hone

#endif
