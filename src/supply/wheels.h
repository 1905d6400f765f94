// Toolkits that Hone can fetch, as pinned Python wheels: each is what its hash says, or is refused.
#ifndef HONE_SUPPLY_WHEELS_H
#define HONE_SUPPLY_WHEELS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct Wheel {
  std::string project;                 // name in the index
  std::string file;                    // name of the file
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Toolkit {
  std::string name, version;           // "cuda", "13.5.37"
  std::string licence, licence_url;
  std::vector<Wheel> wheels;
  std::string folder;                  // inside the wheels, what becomes the toolkit's root: "nvidia/cu13/"
  std::string proof;                   // a file that a whole toolkit has: "bin/nvcc"
  std::uint64_t unpacked_bytes = 0;    // about
  std::string below = {};              // where in the root what lies in `folder` goes: "deep_gemm/include/"
  std::string variable = {};           // of the environment: another root that is used instead
  std::string root = {};               // its own folder among the toolchains; empty: its name
  std::uint64_t download_bytes() const;
  std::string root_name() const { return root.empty() ? name : root; }
};

// NVIDIA's compiler, assembler, headers, run time and disassemblers for x86-64 Linux.
const Toolkit& cuda_toolkit();
// DeepGEMM's device headers, for baselines (toolchain/headers.h).
const Toolkit& deepgemm_toolkit();
const std::vector<const Toolkit*>& toolkits();
const Toolkit* find_toolkit(std::string_view name);    // null: there is none of that name

}  // namespace hone

#endif
