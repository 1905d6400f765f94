// Bytes by their SHA-256, as files below one folder. Who may read them and what keeps them is in the store
// (server/store.h); here they only appear whole or not at all.
#ifndef HONE_SERVER_BLOBS_H
#define HONE_SERVER_BLOBS_H

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fs.h"

namespace hone::server {

// 64 lower-case hex digits: nothing else ever becomes part of a path.
bool is_sha256(std::string_view text);

class Blobs {
 public:
  // Makes the folder; removes uploads that a killed server left behind.
  static Result<Blobs> open(const fs::path& folder);

  // An upload in parts. Kind contract when the bytes are others than `sha256` says, io when the disk is
  // full; in both cases nothing of it is left.
  class Upload {
   public:
    Upload(Upload&& other) noexcept : fd_(std::exchange(other.fd_, -1)), temp_(std::move(other.temp_)), target_(std::move(other.target_)), bytes_(other.bytes_), hash_(std::exchange(other.hash_, nullptr)) {}
    Upload& operator=(Upload&&) = delete;
    ~Upload();
    Result<> append(std::string_view bytes);
    // Checked, synced and in its place.
    Result<> finish();
    std::uint64_t bytes() const { return bytes_; }

   private:
    friend class Blobs;
    Upload() = default;
    int fd_ = -1;
    fs::path temp_, target_;
    std::uint64_t bytes_ = 0;
    void* hash_ = nullptr;                 // EVP_MD_CTX
  };
  Result<Upload> begin(const std::string& sha256) const;

  Result<> put(const std::string& sha256, std::string_view bytes) const;
  bool holds(const std::string& sha256) const;
  fs::path place_of(const std::string& sha256) const { return folder_ / sha256.substr(0, 2) / sha256; }
  // Kind not_found; contract when the file was damaged (it is removed: it can be put again).
  Result<std::string> get(const std::string& sha256) const;
  Result<> remove(const std::string& sha256) const;

 private:
  explicit Blobs(fs::path folder) : folder_(std::move(folder)) {}
  fs::path folder_;
};

}  // namespace hone::server

#endif
