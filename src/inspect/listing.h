// A listing of code (PTX, or what a disassembler printed) read into what each kernel holds. The text comes from a
// candidate's code by way of a tool: it is hostile input, and nothing of it is more than counted and quoted.
#ifndef HONE_INSPECT_LISTING_H
#define HONE_INSPECT_LISTING_H

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "inspect/mix.h"

namespace hone {

struct KernelCode {
  std::size_t instructions = 0;                                     // static count; padding is left out
  Mix mix{};
  std::map<std::pair<std::string, int>, std::size_t> lines;         // {file as the compiler named it, line}: instructions
};
// By mangled symbol; functions that kernels call have entries of their own. At most 20,000 functions.
using Listing = std::map<std::string, KernelCode, std::less<>>;

Listing read_ptx(std::string_view text);        // lines from .file and .loc
Listing read_sass(std::string_view text);       // nvdisasm -c, with -g for lines; cuobjdump -sass
Listing read_objdump(std::string_view text);    // objdump -d -l --no-show-raw-insn of x86-64

}  // namespace hone

#endif
