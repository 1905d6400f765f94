#include "run/launcher.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/channel.h"

namespace hone {
namespace {

constexpr const char* kSocket = "launcher.sock";

struct Fd {
  int value = -1;
  ~Fd() {
    if (value >= 0) ::close(value);
  }
  int release() { return std::exchange(value, -1); }
};

// A run's path may be longer than the 107 bytes of an address: the directory is named by its descriptor.
Result<sockaddr_un> address_in(const Fd& directory) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory.value, kSocket);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<int> open_directory(const Run& run) {
  const int fd = ::open(run.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(io_error("open", run.root));
  return fd;
}

const sockaddr* as_address(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

Error gone() {
  return make_error(ErrorKind::unavailable, "the launcher of this run is gone before it answered")
      .with_hint("`hone status` says what was recorded; `hone run --resume` goes on");
}

}  // namespace

Result<std::optional<nlohmann::json>> ask_launcher(const Run& run, const nlohmann::json& request,
                                                   const std::function<void(const std::string&)>& progress, const std::atomic<bool>* cancel) {
  HONE_TRY(const int opened, open_directory(run));
  const Fd directory{opened};
  HONE_TRY(const sockaddr_un address, address_in(directory));
  Fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (socket.value < 0) return fail(ErrorKind::environment, "no socket: {}", std::strerror(errno));
  int connected;
  do connected = ::connect(socket.value, as_address(address), sizeof address);
  while (connected != 0 && errno == EINTR);
  if (connected != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return std::optional<nlohmann::json>();
    return fail(io_error("reach", run.root / kSocket));
  }
  Channel channel(socket.release());
  if (!channel.send(request)) return fail(gone());
  for (;;) {
    nlohmann::json line;
    const Channel::Got got = channel.receive(line, 0.1);
    if (got == Channel::Got::closed) return fail(gone());
    if (got == Channel::Got::nothing) {
      if (cancel == nullptr || !cancel->load()) continue;
      return fail(make_error(ErrorKind::cancelled, "cancelled").with_hint("a measurement that had begun is finished and recorded: `hone status`"));
    }
    if (line.value("done", false)) {
      if (const auto error = line.find("error"); error != line.end() && error->is_object()) return fail(error->get<Error>());
      return std::optional<nlohmann::json>(std::move(line));
    }
    if (const auto text = line.find("progress"); progress && text != line.end() && text->is_string()) progress(text->get<std::string>());
  }
}

Result<int> listen_as_launcher(const Run& run) {
  HONE_TRY(const int opened, open_directory(run));
  const Fd directory{opened};
  HONE_TRY(const sockaddr_un address, address_in(directory));
  Fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (socket.value < 0) return fail(ErrorKind::environment, "no socket: {}", std::strerror(errno));
  // The run's lock is held: what lies here is a killed launcher's.
  if (::unlinkat(directory.value, kSocket, 0) != 0 && errno != ENOENT) return fail(io_error("remove", run.root / kSocket));
  const mode_t before = ::umask(0177);
  const int bound = ::bind(socket.value, as_address(address), sizeof address);
  ::umask(before);
  if (bound != 0 || ::listen(socket.value, 64) != 0) return fail(io_error("listen at", run.root / kSocket));
  return socket.release();
}

Result<> check_turn_has_launcher() {
  const char* turn = std::getenv(kTurnVariable);
  if (turn == nullptr || *turn == '\0') return {};
  return fail(make_error(ErrorKind::unavailable, "the launcher that this turn belongs to is gone: nothing is measured without it")
                  .with_hint("end this turn; `hone run --resume` starts another"));
}

}  // namespace hone
