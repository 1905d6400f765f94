// Functions of a shared object, and what their mangled names say. Both read hostile bytes.
#ifndef HONE_PROGRAM_SYMBOL_H
#define HONE_PROGRAM_SYMBOL_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

struct ElfFunction {
  std::string_view name;        // mangled, inside the file's bytes
  std::uint64_t offset = 0;     // from the load address, inside an executable segment
};

// Every defined function of .symtab and .dynsym, by name and offset once. Kind kernel_name for a
// file that is no 64-bit little-endian shared object, is cut short or holds more than 200,000
// symbols. Nothing is allocated by a size that the file claims.
Result<std::vector<ElfFunction>> functions_of(std::string_view elf);

// A function's name taken apart, in the words of c++filt: "float const*", "unsigned int".
struct FunctionName {
  std::string qualified;                  // "tile::gemm"; anonymous namespaces are left out
  bool is_template = false;
  std::vector<std::string> arguments;     // of the last template: "3", "4u", "float"
  std::string returns;                    // templates only
  std::vector<std::string> parameters;

  std::string text() const;               // "void tile::gemm<3, 4u>(hone::Block const&, float const*)"
};

// Itanium C++ ABI, the part that kernels' names need. Not: constructors, operators, local names,
// expressions and function or array types in parameters, parameter packs in parameters; for those
// (and for names that are no functions, and clones such as "f.cold") nothing is returned. Unlike
// abi::__cxa_demangle it cannot be made to blow up by nested substitutions: a name that expands to
// more than 8 KiB is refused.
std::optional<FunctionName> demangle_function(std::string_view mangled);

// A kernel's name for people: demangled where Hone can, else the symbol itself.
std::string readable_symbol(std::string_view mangled);

}  // namespace hone

#endif
