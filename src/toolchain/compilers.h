// The compilers of this machine, and what makes their output differ from another machine's.
#ifndef HONE_TOOLCHAIN_COMPILERS_H
#define HONE_TOOLCHAIN_COMPILERS_H

#include <string>

#include "toolchain/toolchain.h"

namespace hone {

struct Compiler {
  CompilerInfo info;
  std::string identity;   // version line, path, size and time of the binary: a part of every cache key
  bool is_clang() const { return info.name == "clang++"; }
};

// `name` is g++ or clang++. Only compilers in the system's folders count: those are what a jail
// shows. Kind no_compiler. Remembered for the life of the process, by path and time.
Result<Compiler> find_compiler(const std::string& name);

// What -march=native means here: the CPU's model and feature flags.
const std::string& native_target();

}  // namespace hone

#endif
