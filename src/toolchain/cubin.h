// The kernels of a cubin: their symbols and what the file says of their parameters. A cubin is an ELF
// file of machine EM_CUDA whose entry functions carry a flag; facts of a kernel lie in `.nv.info.<kernel>`.
#ifndef HONE_TOOLCHAIN_CUBIN_H
#define HONE_TOOLCHAIN_CUBIN_H

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

struct CubinParameter {
  std::uint32_t offset = 0, bytes = 0;   // in the kernel's parameter block
};

struct CubinKernel {
  std::string_view symbol;                   // mangled, inside the file's bytes
  std::vector<CubinParameter> parameters;    // in the order of declaration
  std::uint32_t parameter_bytes = 0;         // of the whole block
  std::uint32_t constant_bytes = 0;          // of its bank 0, the parameters and what the driver puts before them included
  std::uint32_t max_threads = 0;             // a block's, as __launch_bounds__ says; 0: unsaid
};

// Whether the bytes begin like a cubin.
bool is_cubin(std::string_view bytes);

// The entry functions, by symbol. Kind kernel_name for a file that is no cubin, is cut short, or holds
// more than 20,000 symbols or kernels with more than 256 parameters. The bytes are hostile input.
Result<std::vector<CubinKernel>> kernels_of_cubin(std::string_view bytes);

}  // namespace hone

#endif
