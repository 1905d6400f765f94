#include "server/blobs.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/hash.h"

namespace hone::server {
namespace {

Result<> sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(io_error("open", folder));
  const bool synced = ::fsync(fd) == 0;
  const Error error = io_error("sync", folder);
  ::close(fd);
  return synced ? Result<>() : fail(error);
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<Blobs> Blobs::open(const fs::path& folder) {
  HONE_CHECK(remove_tree(folder / "uploads"));
  HONE_CHECK(make_dirs(folder / "uploads"));
  return Blobs(folder);
}

Blobs::Upload::~Upload() {
  if (hash_ != nullptr) EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(hash_));
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temp_.c_str());
}

Result<Blobs::Upload> Blobs::begin(const std::string& sha256) const {
  if (!is_sha256(sha256)) return fail(ErrorKind::usage, "a blob's name is its SHA-256 as 64 lower-case hex digits");
  Upload upload;
  upload.temp_ = folder_ / "uploads" / fmt::format("{:016x}", random_seed());
  upload.target_ = place_of(sha256);
  upload.hash_ = EVP_MD_CTX_new();
  if (upload.hash_ == nullptr || EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(upload.hash_), EVP_sha256(), nullptr) != 1)
    return fail(ErrorKind::internal, "SHA-256 is not available");
  upload.fd_ = ::open(upload.temp_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (upload.fd_ < 0) return fail(io_error("create", upload.temp_));
  return upload;
}

Result<> Blobs::Upload::append(std::string_view bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(hash_), bytes.data(), bytes.size());
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(io_error("write", temp_));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<> Blobs::Upload::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(hash_), digest.data(), &size);
  const std::string hex = to_hex({reinterpret_cast<const char*>(digest.data()), size});
  if (hex != target_.filename().string())
    return fail(make_error(ErrorKind::contract, "the {} bytes that came have the hash {}, not {}", bytes_, hex, target_.filename().string())
                    .with_hint("send them again"));
  if (::fsync(fd_) != 0) return fail(io_error("sync", temp_));
  HONE_CHECK(make_dirs(target_.parent_path()));
  if (::rename(temp_.c_str(), target_.c_str()) != 0) return fail(io_error("move into its place", target_));
  ::close(fd_);
  fd_ = -1;
  return sync_folder(target_.parent_path());
}

Result<> Blobs::put(const std::string& sha256, std::string_view bytes) const {
  HONE_TRY(Upload upload, begin(sha256));
  HONE_CHECK(upload.append(bytes));
  return upload.finish();
}

bool Blobs::holds(const std::string& sha256) const {
  std::error_code ignored;
  return is_sha256(sha256) && fs::is_regular_file(place_of(sha256), ignored);
}

Result<std::string> Blobs::get(const std::string& sha256) const {
  if (!holds(sha256)) return fail(ErrorKind::not_found, "blob {} is not here", is_sha256(sha256) ? sha256 : "of that name");
  HONE_TRY(std::string bytes, read_file(place_of(sha256)));
  if (hone::sha256(bytes) != sha256) {
    HONE_CHECK(remove(sha256));
    return fail(make_error(ErrorKind::contract, "blob {} was damaged on disk and is removed", sha256).with_hint("put it again"));
  }
  return bytes;
}

Result<> Blobs::remove(const std::string& sha256) const {
  if (!is_sha256(sha256)) return fail(ErrorKind::usage, "a blob's name is its SHA-256 as 64 lower-case hex digits");
  if (::unlink(place_of(sha256).c_str()) != 0 && errno != ENOENT) return fail(io_error("remove", place_of(sha256)));
  return {};
}

}  // namespace hone::server
