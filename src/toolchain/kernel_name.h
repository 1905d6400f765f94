// How a kernel is named in a plan: as in C++ source, "tile::gemm<128, float, (Mode)1>".
#ifndef HONE_TOOLCHAIN_KERNEL_NAME_H
#define HONE_TOOLCHAIN_KERNEL_NAME_H

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

// Letters, digits, `_`, `::`, balanced `<>` with commas, blanks, `-`, and `()` inside them; at most
// 512 characters. Kind kernel_name says what is wrong and where. The name ends up in a generated
// source file, so nothing else may pass.
Result<> check_kernel_name(std::string_view name);

// "tile::gemm<128, std::pair<int, int>>" as {"tile::gemm", {"128", "std::pair<int, int>"}}; blanks at
// the ends of each part are dropped. The name must have passed check_kernel_name, or come from a
// demangler.
struct KernelName {
  std::string qualified;
  bool has_arguments = false;
  std::vector<std::string> arguments;
};
KernelName split_kernel_name(std::string_view name);

}  // namespace hone

#endif
