#include "supply/download.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/hash.h"
#include "base/text.h"
#include "client/http_client.h"
#include "supply/index.h"

namespace hone {
namespace {

using client::HttpAnswer;
using client::HttpClient;
using client::Url;

constexpr int kMostRedirects = 5;
constexpr std::size_t kLargestPage = std::size_t{32} << 20;

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }
bool cancelled(const Fetching& how) { return how.cancel != nullptr && how.cancel->load(); }

// GET along redirects; `sink` sees the last answer only.
Result<HttpAnswer> get(Url url, const std::vector<std::pair<std::string, std::string>>& headers,
                       const HttpClient::Sink& sink, const Fetching& how) {
  for (int hop = 0; hop <= kMostRedirects; ++hop) {
    HttpClient http(url);
    const auto only_last = [&](const HttpAnswer& head, std::string_view piece) -> Result<> {
      if (cancelled(how)) return fail(ErrorKind::cancelled, "stopped while fetching {}", to_text(url));
      return is_redirect(head.status) ? Result<>() : sink(head, piece);
    };
    auto answer = http.get("", headers, only_last, how.idle_s);
    if (!answer) {
      Error error = answer.error();
      if (error.kind == ErrorKind::unavailable || error.kind == ErrorKind::environment)
        error.hint = "is this machine online? --index or HONE_INDEX names another package index; what came is kept";
      return fail(std::move(error));
    }
    if (!is_redirect(answer->status)) return answer;
    HONE_TRY(const Url next, resolve_link(url, answer->headers["location"]));
    if (url.tls && !next.tls) return fail(ErrorKind::environment, "{} leads to the unprotected {}", to_text(url), to_text(next));
    url = next;
  }
  return fail(ErrorKind::unavailable, "{}: more than {} redirects", to_text(url), kMostRedirects);
}

Error wrong_status(const Url& url, int status) {
  return make_error(status >= 500 ? ErrorKind::unavailable : ErrorKind::environment, "{} answers {}", to_text(url), status)
      .with_hint("--index or HONE_INDEX names another package index");
}

// Tries again what a broken connection ended, as long as `attempt` makes headway: it says how far it came.
Result<> patiently(const Fetching& how, const std::function<std::uint64_t()>& reached, const std::function<Result<>()>& attempt) {
  std::uint64_t before = reached();
  for (int left = how.tries;;) {
    const auto done = attempt();
    if (done || done.error().kind != ErrorKind::unavailable) return done;
    const std::uint64_t now = reached();
    left = now > before ? how.tries : left - 1;
    before = now;
    if (left <= 0) return done;
    for (double waited = 0; waited < how.pause_s && !cancelled(how); waited += 0.05)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (cancelled(how)) return fail(ErrorKind::cancelled, "stopped");
  }
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  return code ? 0 : size;
}

Result<std::string> hash_of_file(const fs::path& path) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(io_error("read", path));
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  std::string piece(std::size_t{1} << 20, '\0');
  ssize_t n = 0;
  while ((n = ::read(fd, piece.data(), piece.size())) > 0) EVP_DigestUpdate(context.get(), piece.data(), static_cast<std::size_t>(n));
  const int code = errno;
  ::close(fd);
  if (n < 0) return fail(io_error("read", path, code));
  std::string digest(32, '\0');
  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return to_hex(digest);
}

// Asks for what is missing of `part` and appends it.
Result<> go_on(const Url& url, const Wheel& wheel, const fs::path& part, const Fetching& how) {
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return fail(io_error("write", part));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* each) { ::close(*each); });
  std::uint64_t at = size_of(part);
  if (at > 0 && at == wheel.bytes) return {};
  std::vector<std::pair<std::string, std::string>> headers;
  if (at > 0) headers.emplace_back("Range", fmt::format("bytes={}-", at));
  bool begun = false;
  const auto answer = get(url, headers, [&](const HttpAnswer& head, std::string_view piece) -> Result<> {
    if (head.status != 200 && head.status != 206) return {};
    if (!std::exchange(begun, true)) {
      if (head.status == 200) at = 0;        // it sends the whole, whatever was asked
      if (::ftruncate(fd, static_cast<off_t>(at)) != 0 || ::lseek(fd, static_cast<off_t>(at), SEEK_SET) < 0)
        return fail(io_error("write", part));
    }
    if (at + piece.size() > wheel.bytes)
      return fail(ErrorKind::environment, "{} is larger than the {} bytes that {} has", to_text(url), wheel.bytes, wheel.file);
    while (!piece.empty()) {
      const ssize_t n = ::write(fd, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(io_error("write", part));
      piece.remove_prefix(static_cast<std::size_t>(n));
      at += static_cast<std::uint64_t>(n);
    }
    if (how.progress) how.progress(at);
    return {};
  }, how);
  if (!answer) return fail(answer.error());
  if (answer->status != 200 && answer->status != 206) return fail(wrong_status(url, answer->status));
  if (at < wheel.bytes)
    return fail(ErrorKind::unavailable, "{} ended after {} of {}", to_text(url), format_bytes(at),
                format_bytes(wheel.bytes));
  return {};
}

}  // namespace

Result<std::string> fetch_page(const Url& url, const Fetching& how) {
  std::string page;
  const auto attempt = [&]() -> Result<> {
    page.clear();
    HONE_TRY(const HttpAnswer answer, get(url, {{"Accept", "text/html"}}, [&](const HttpAnswer&, std::string_view piece) -> Result<> {
      page += piece;
      return page.size() > kLargestPage
                 ? Result<>(
                       fail(ErrorKind::environment, "{} is no page of a package index: it is too long", to_text(url)))
                 : Result<>();
    }, how));
    return answer.status == 200 ? Result<>() : Result<>(fail(wrong_status(url, answer.status)));
  };
  HONE_CHECK(patiently(how, [] { return std::uint64_t{0}; }, attempt));
  return page;
}

bool is_fetched(const Wheel& wheel, const fs::path& file) {
  if (size_of(file) != wheel.bytes) return false;
  const auto hash = hash_of_file(file);
  return hash && *hash == wheel.sha256;
}

Result<> fetch_wheel(const Url& url, const Wheel& wheel, const fs::path& to, const Fetching& how) {
  const fs::path part = to.string() + ".part";
  if (size_of(part) > wheel.bytes) HONE_CHECK(remove_tree(part));
  const auto fetched = patiently(how, [&] { return size_of(part); }, [&] { return go_on(url, wheel, part, how); });
  if (!fetched) {
    if (fetched.error().kind == ErrorKind::environment) HONE_CHECK(remove_tree(part));
    return fetched;
  }
  HONE_TRY(const std::string hash, hash_of_file(part));
  if (hash != wheel.sha256) {
    HONE_CHECK(remove_tree(part));
    return fail(make_error(ErrorKind::environment,
                           "{} from {} is not what it should be: its SHA-256 is {} instead of {}", wheel.file,
                           to_text(url), hash, wheel.sha256)
                    .with_hint("it was damaged on the way or replaced; nothing of it was used. Try again, or name "
                               "another index with --index"));
  }
  std::error_code code;
  fs::rename(part, to, code);
  if (code) return fail(io_error("rename", part, code.value()));
  return {};
}

}  // namespace hone
