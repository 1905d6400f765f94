#include "supply/wheels.h"

#include <fmt/format.h>

#include "toolchain/headers.h"

namespace hone {
namespace {

constexpr const char* kManylinux2014 = "-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl";

}  // namespace

std::uint64_t Toolkit::download_bytes() const {
  std::uint64_t sum = 0;
  for (const Wheel& wheel : wheels) sum += wheel.bytes;
  return sum;
}

const Toolkit& cuda_toolkit() {
  static const Toolkit toolkit{
      "cuda",
      "13.5.37",
      "NVIDIA CUDA Toolkit End User License Agreement",
      "https://docs.nvidia.com/cuda/eula/index.html",
      {{"nvidia-cuda-nvcc", std::string("nvidia_cuda_nvcc-13.5.37") + kManylinux2014, 47028279,
        "f5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7"},
       {"nvidia-nvvm", "nvidia_nvvm-13.5.37-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl", 75141406,
        "c41bfa362e407405163f103c2229f0765f8cc2ed7d148b754dc77f228bf7e070"},
       {"nvidia-cuda-crt", std::string("nvidia_cuda_crt-13.5.37") + kManylinux2014, 166163,
        "e898b7f73d3035fa89915a3f7bf3b54a73e90249746111aed295822c4729bb29"},
       {"nvidia-cuda-runtime", std::string("nvidia_cuda_runtime-13.5.37") + kManylinux2014, 2504024,
        "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d"},
       {"nvidia-cuda-cccl", std::string("nvidia_cuda_cccl-13.3.5.0.6") + kManylinux2014, 4113651,
        "d5230098fa2df5021e1a00c0c4eee41797671a91119d31e892463e5ccf3ee326"},
       {"nvidia-cuda-cuobjdump", std::string("nvidia_cuda_cuobjdump-13.5.37") + kManylinux2014, 290354,
        "38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58"},
       {"nvidia-cuda-nvdisasm", std::string("nvidia_cuda_nvdisasm-13.5.37") + kManylinux2014, 5170654,
        "d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca"}},
      "nvidia/cu13/",
      "bin/nvcc",
      std::uint64_t{420} << 20,
      "",
      "HONE_CUDA"};
  return toolkit;
}

const Toolkit& deepgemm_toolkit() {
  static const Toolkit toolkit = [] {
    const HeaderPackage& package = *find_header_package("deepgemm");
    const std::string folder = std::string(package.include) + "/";
    return Toolkit{std::string(package.name), std::string(package.version), std::string(package.licence),
                   fmt::format("https://pypi.org/project/{}/{}/", package.project, package.version),
                   {{std::string(package.project), std::string(package.file), 5061095, std::string(package.file_sha256)}},
                   folder, folder + "deep_gemm/common/math.cuh", std::uint64_t{40} << 20, folder, std::string(package.variable), place_of(package).filename().string()};
  }();
  return toolkit;
}

const std::vector<const Toolkit*>& toolkits() {
  static const std::vector<const Toolkit*> all = {&cuda_toolkit(), &deepgemm_toolkit()};
  return all;
}

const Toolkit* find_toolkit(std::string_view name) {
  for (const Toolkit* each : toolkits())
    if (each->name == name) return each;
  return nullptr;
}

}  // namespace hone
