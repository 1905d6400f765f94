#include "fake_index.h"

#include <arpa/inet.h>
#include <minizip/zip.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "testing/testing.h"

namespace hone::testing {
namespace {

bool send_all(int connection, std::string_view bytes, int pause_us) {
  while (!bytes.empty()) {
    const std::size_t piece = pause_us > 0 ? std::min<std::size_t>(bytes.size(), 4096) : bytes.size();
    const ssize_t n = ::send(connection, bytes.data(), piece, MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    if (pause_us > 0) ::usleep(static_cast<useconds_t>(pause_us));
  }
  return true;
}

}  // namespace

FakeIndex::FakeIndex() {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 16) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

FakeIndex::~FakeIndex() {
  stop_ = true;
  thread_.join();
  for (std::thread& each : connections_) each.join();
  ::close(socket_);
}

std::vector<std::string> FakeIndex::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void FakeIndex::serve() {
  while (!stop_) {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, 20) != 1) continue;
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0)
      connections_.emplace_back([this, connection] {
        answer(connection);
        ::close(connection);
      });
  }
}

void FakeIndex::answer(int connection) {
  std::string request;
  for (char piece[4096]; request.find("\r\n\r\n") == std::string::npos;) {
    const ssize_t n = ::recv(connection, piece, sizeof piece, 0);
    if (n <= 0) return;
    request.append(piece, static_cast<std::size_t>(n));
  }
  const std::string path = request.substr(4, request.find(' ', 4) - 4), name = path.substr(path.rfind('/') + 1);
  std::string head = "HTTP/1.1 200 OK\r\n", body;
  std::size_t sent = std::string::npos;
  if (path.starts_with("/simple/")) {
    for (const auto& [file, bytes] : files) body += "<a href=\"../../files/" + file + "#sha256=0\">" + file + "</a><br/>\n";
  } else if (redirect && path.starts_with("/files/")) {
    head = "HTTP/1.1 302 Found\r\nLocation: /elsewhere/" + name + "\r\n";
  } else if (const auto found = files.find(name); found == files.end()) {
    head = "HTTP/1.1 404 Not Found\r\n";
  } else {
    std::size_t from = 0;
    std::string range;
    if (const std::size_t at = request.find("Range: bytes="); at != std::string::npos) {
      range = " " + request.substr(at + 7, request.find("\r\n", at) - at - 7);
      if (ranges) from = static_cast<std::size_t>(std::atoll(request.c_str() + at + 13));
    }
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(name + range);
    }
    if (from > 0) head = "HTTP/1.1 206 Partial Content\r\n";
    body = found->second.substr(std::min(from, found->second.size()));
    if (tear > 0) {
      --tear;
      sent = tear_at > 0 ? std::min(tear_at.load(), body.size()) : body.size() / 2;
    }
  }
  head += "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
  send_all(connection, head, 0) && send_all(connection, std::string_view(body).substr(0, sent), pause_us);
}

std::string zip_of(const std::map<std::string, std::string>& files) {
  const fs::path path = scratch("zip") / "made.zip";
  void* zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  for (const auto& [starred, bytes] : files) {
    const bool program = starred.ends_with('*');
    const std::string name = program ? starred.substr(0, starred.size() - 1) : starred;
    zip_fileinfo info{};
    info.external_fa = static_cast<uLong>(S_IFREG | (program ? 0755 : 0644)) << 16;
    // Made by Unix: the upper half of the attributes is a mode.
    if (zipOpenNewFileInZip4_64(zip, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED, 6, 0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, nullptr,
                                0, 3 << 8, 0, 0) != ZIP_OK)
      std::abort();
    zipWriteInFileInZip(zip, bytes.data(), static_cast<unsigned>(bytes.size()));
    zipCloseFileInZip(zip);
  }
  zipClose(zip, nullptr);
  const auto out = read_file(path);
  return out ? *out : std::string();
}

}  // namespace hone::testing
