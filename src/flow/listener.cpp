#include "flow/listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/channel.h"
#include "base/fs.h"
#include "run/launcher.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kTalkers = 128;              // connections at once
constexpr double kRequestSeconds = 10;     // until a request's line is there

// Whether the other end hung up. It may shut down its writing side and still wait for the answer.
bool hung_up(int fd) {
  pollfd wait = {fd, 0, 0};
  return ::poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

ino_t inode_of(const Run& run) {
  struct stat info = {};
  return ::lstat((run.root / "launcher.sock").c_str(), &info) == 0 ? info.st_ino : 0;
}

int parent_of(int pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid), std::size_t{1} << 20);
  if (!status) return -1;
  const std::size_t at = status->find("\nPPid:");
  return at == std::string::npos ? -1 : std::atoi(status->c_str() + at + 6);
}

}  // namespace

bool started_here(int pid) {
  const int self = ::getpid();
  for (int depth = 0; depth < 4096; ++depth) {
    if (pid == self) return true;
    if (pid == 1) return false;
    if (pid <= 0) return true;
    pid = parent_of(pid);
  }
  return true;
}

Result<std::unique_ptr<Listener>> Listener::start(const Run& run, Answer answer) {
  HONE_TRY(const int fd, listen_as_launcher(run));
  std::unique_ptr<Listener> listener(new Listener(run, fd, std::move(answer)));
  listener->thread_ = std::thread([raw = listener.get()] { raw->serve(); });
  return listener;
}

Listener::~Listener() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(fd_);
  ::unlink((run_.root / "launcher.sock").c_str());
  while (talking_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void Listener::serve() {
  ino_t own = inode_of(run_);
  for (int quiet = 0; !stopping_;) {
    pollfd wait = {fd_, POLLIN, 0};
    if (::poll(&wait, 1, 100) <= 0) {
      // Somebody removed the socket, or put another in its place.
      if (++quiet % 10 != 0 || inode_of(run_) == own) continue;
      if (const auto again = listen_as_launcher(run_)) {
        ::close(std::exchange(fd_, *again));
        own = inode_of(run_);
      }
      continue;
    }
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    if (talking_ >= kTalkers) {
      ::close(fd);
      continue;
    }
    ++talking_;
    std::thread([this, fd] {
      talk(fd);
      --talking_;
    }).detach();
  }
}

void Listener::talk(int fd) {
  Channel channel(fd, kLongestRequest);
  const auto finish = [&](const Result<json>& result) {
    json last = result ? *result : json{{"error", result.error()}};
    last["done"] = true;
    channel.send(last);
  };
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::getuid()) return;
  json request;
  if (channel.receive(request, kRequestSeconds) != Channel::Got::message)
    return finish(fail(make_error(ErrorKind::usage, "a request is one JSON object on a line of at most {} bytes", kLongestRequest)));
  Caller caller;
  caller.of_turn = started_here(peer.pid);
  caller.gone = [&] { return stopping_ || hung_up(fd); };
  caller.progress = [&](const std::string& line) { channel.send({{"progress", line}}); };
  try {
    finish(answer_(request, caller));
  } catch (const std::exception& error) {
    finish(fail(make_error(ErrorKind::internal, "{}", error.what())));
  }
}

}  // namespace hone
