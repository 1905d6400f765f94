// The vendor's tools that watch a process: ncu (Nsight Compute) and compute-sanitizer.
#ifndef HONE_PROFILE_TOOL_H
#define HONE_PROFILE_TOOL_H

#include <string>

#include "base/fs.h"

namespace hone {

// In PATH, $CUDA_HOME/bin, a CUDA toolkit, /usr/local/cuda*/{bin,compute-sanitizer}, /opt/nvidia/nsight-compute/*; the newest
// where several are in one place. Kind environment, saying what to install.
Result<fs::path> find_vendor_tool(const std::string& name);

}  // namespace hone

#endif
