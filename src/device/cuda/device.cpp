#include <unistd.h>

#include "device/cuda/session.h"
#include "device/device.h"
#include "toolchain/toolchain.h"

namespace hone {
namespace cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(Setup setup, DeviceInfo info) : setup_(std::move(setup)), info_(std::move(info)) {}
  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<Session>> open(const SessionSpec& spec) override { return CudaSession::open(setup_, spec); }
  Result<WatchedCommand> watched(const WatchSpec& spec, const fs::path& folder) const override { return watched_command(setup_, spec, folder); }

 private:
  Setup setup_;
  DeviceInfo info_;
};

Result<> check_installed(const fs::path& libexec) {
  if (::access((libexec / "hone-gpu").c_str(), X_OK) == 0) return {};
  return fail(make_error(ErrorKind::environment, "{} is not there or cannot be executed", (libexec / "hone-gpu").string())
                  .with_hint("an installation is the hone binary and share/hone beside it; HONE_SHARE names another share folder"));
}

}  // namespace

Result<fs::path> compile_helpers(const Toolchain& toolchain, const fs::path& share, const std::string& architecture) {
  CompileRequest request;
  for (const char* name : {"helpers.cu", "params.h"}) {
    HONE_TRY(request.sources[name], read_file(share / "cuda" / name));
  }
  request.entry = "helpers.cu";
  request.compiler = "nvcc";
  request.architecture = architecture;
  request.kind = ArtifactKind::cubin;
  request.trusted = true;
  request.flags = {"-fmad=false"};                    // each operation rounded by itself, as on the host
  auto artifact = toolchain.compile(request);
  if (artifact) return artifact->path;
  Error error = std::move(artifact).error();
  if (error.kind == ErrorKind::no_compiler) {
    error.kind = ErrorKind::environment;
    error.message = "no nvcc for the CUDA device: " + error.message;
  }
  return fail(std::move(error));
}

Result<std::unique_ptr<Device>> open_cuda_device(Setup setup) {
  HONE_CHECK(check_installed(setup.libexec));
  HONE_TRY(DeviceInfo info, ask_info(setup.libexec, setup.ordinal));
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(setup), std::move(info)));
}

}  // namespace cuda

Result<std::unique_ptr<Device>> make_cuda_device(const Toolchain& toolchain, const fs::path& libexec, const fs::path& share, int ordinal) {
  HONE_CHECK(cuda::check_installed(libexec));
  HONE_TRY(DeviceInfo info, cuda::ask_info(libexec, ordinal));
  HONE_TRY(fs::path helpers, cuda::compile_helpers(toolchain, share, info.architecture));
  return std::unique_ptr<Device>(std::make_unique<cuda::CudaDevice>(cuda::Setup{libexec, std::move(helpers), ordinal}, std::move(info)));
}

}  // namespace hone
