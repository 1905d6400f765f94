#include <CLI/CLI.hpp>
#include <sys/prctl.h>

#include "cli/verb.h"
#include "server/device_process.h"
#include "server/work.h"

namespace hone::cli {
namespace {

constexpr int kChannelFd = 3;

int worker(const Global& global, bool exec, std::optional<int> gpu) {
  server::adopt_orphans();                 // what a job leaves behind comes to this process, not to another device's
  Channel channel(kChannelFd);
  const auto environment = open_environment(global, gpu ? "cuda" : "cpu", gpu.value_or(0));
  Result<> usable;
  if (!environment) {
    usable = fail(environment.error());
  } else if (const SandboxStatus& status = (*environment)->sandbox.status(); !status.available) {
    usable = fail(make_error(ErrorKind::sandbox_unavailable, "this machine refuses {}: {}", status.refused, status.reason).with_hint(status.hint));
  }
  if (!usable) {
    nlohmann::json error;
    to_json(error, usable.error());
    channel.send({{"fatal", std::move(error)}});
    return exit_code_of(usable.error().kind);
  }
  server::work(channel, (*environment)->bench(), exec);
  return 0;
}

}  // namespace

void define_worker(CLI::App& app, Invocation& invocation) {
  struct Options {
    bool exec = false;
    std::optional<int> gpu;
  };
  auto options = std::make_shared<Options>();
  app.add_flag("--exec", options->exec, "jobs of kind exec are allowed");
  app.add_option("--gpu", options->gpu, "number of the GPU that it owns; none: the CPU device");
  app.callback([&invocation, options] {
    invocation.action = [&invocation, options] { return worker(invocation.global, options->exec, options->gpu); };
  });
}

}  // namespace hone::cli
