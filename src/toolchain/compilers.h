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
// jail shows. A CUDA toolkit is looked for in $HONE_CUDA, /usr/local/cuda, PATH and toolchains_dir(), in this
// order. Kind no_compiler. Remembered for the life of the process, by path and time.
Result<Compiler> find_compiler(const std::string& name);

// A program of a CUDA toolkit ("nvdisasm"): of the first of them that has it, in the order of find_compiler, else of PATH;
// links resolved. Empty: there is none.
fs::path find_cuda_program(const std::string& name);

// What -march=native means here: the CPU's model and feature flags.
const std::string& native_target();

}  // namespace hone

#endif
