// The compilers of this machine, and what makes their output differ from another machine's.
#ifndef HONE_TOOLCHAIN_COMPILERS_H
#define HONE_TOOLCHAIN_COMPILERS_H

#include <string>

#include "toolchain/toolchain.h"

namespace hone {

struct Compiler {
  CompilerInfo info;
  std::string identity;          // version line, path, size and time of the binaries: a part of every cache key
  bool static_runtime = false;   // nvcc: the toolkit holds libcudart_static.a
  bool is_clang() const { return info.name == "clang++"; }
  bool is_nvcc() const { return info.name == "nvcc"; }
  // Whether a jail shows the toolkit by itself; elsewhere it is mounted.
  bool in_system() const { return info.root.empty() || info.root == "/usr" || info.root.starts_with("/usr/"); }
};

// `name` is g++, clang++ or nvcc. Host compilers count only in the system's folders: those are what a
// jail shows. A CUDA toolkit is looked for in $HONE_CUDA, in what `hone toolchain add cuda` has put
// into the data folder, in /usr/local/cuda, in PATH. Kind no_compiler. Remembered for the life of the
// process, by path and time.
Result<Compiler> find_compiler(const std::string& name);

// What -march=native means here: the CPU's model and feature flags.
const std::string& native_target();

}  // namespace hone

#endif
