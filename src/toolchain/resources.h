// What a kernel takes of the machine, as ptxas and the cubin say.
#ifndef HONE_TOOLCHAIN_RESOURCES_H
#define HONE_TOOLCHAIN_RESOURCES_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Registers and stack count for a thread, shared bytes and barriers for a block.
struct KernelResources {
  std::string symbol;                  // mangled
  std::uint32_t registers = 0, barriers = 0;
  std::uint32_t spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0;
  std::uint32_t shared_bytes = 0;      // static; what a launch adds is the plan's
  std::uint32_t constant_bytes = 0;    // bank 0, parameters included
  std::uint32_t max_threads = 0;       // of a block, when the source states it; else 0
};

void to_json(nlohmann::json& out, const KernelResources& kernel);
void from_json(const nlohmann::json& in, KernelResources& kernel);

struct AssemblerReport {
  std::vector<KernelResources> kernels;   // in the order of compilation
  std::vector<std::string> warnings;      // spills, local memory, setmaxnreg ignored, wgmma serialized, ...
};

// Reads what `ptxas -v` printed. Bounded: at most 4096 kernels and 64 warnings.
AssemblerReport read_assembler_report(std::string_view text);

}  // namespace hone

#endif
