// Machine code of an artifact as text, by the tools that this machine has.
#ifndef HONE_TOOLCHAIN_DISASSEMBLE_H
#define HONE_TOOLCHAIN_DISASSEMBLE_H

#include <string>

#include "base/error.h"
#include "toolchain/toolchain.h"

namespace hone {

struct Disassembly {
  std::string tool;                  // "nvdisasm 13.0.85"
  std::string text;                  // at most 32 MiB, whole lines
  std::uint64_t dropped_bytes = 0;   // what was cut off
  bool lines = false;                // it says which source line each instruction is of
};

// A cubin by nvdisasm, else cuobjdump (without lines): of a CUDA toolkit, else of PATH. A shared object by
// objdump. The tool runs in a jail, since the artifact's bytes are hostile input. Kind environment: none of the tools is here.
Result<Disassembly> disassemble(const Artifact& artifact, const Sandbox& sandbox);

}  // namespace hone

#endif
