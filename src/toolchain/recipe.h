// How a request becomes command lines: one file knows what each compiler is told.
#ifndef HONE_TOOLCHAIN_RECIPE_H
#define HONE_TOOLCHAIN_RECIPE_H

#include <string>
#include <string_view>
#include <vector>

#include "toolchain/compilers.h"
#include "toolchain/toolchain.h"

namespace hone {

// Where a compile's folders lie for the compiler: in the jail, or on the host when the sandbox is off.
struct Layout {
  std::string src, include, out, toolkit;   // toolkit: CUDA's root
  bool jailed = true;
  std::vector<std::string> includes = {};   // of the request
};

// Steps run one after the other, each only when those before succeeded. All leave `unit.d`.
struct Recipe {
  std::vector<std::vector<std::string>> steps;
  bool assembles = false;       // the last step is ptxas; it leaves `artifact` from `unit.ptx`
};
Recipe recipe_of(const CompileRequest& request, const Compiler& compiler, const Layout& layout);

// The file that is compiled, relative to the sources, and its text when it is generated: it takes the
// address of each kernel after the source, so that templates exist in the object.
std::string unit_of(const CompileRequest& request);
std::string instantiating_source(const CompileRequest& request);

// Kind forbidden, with the nearest allowed flag.
Result<> check_flag(std::string_view compiler, const std::string& flag);

}  // namespace hone

#endif
