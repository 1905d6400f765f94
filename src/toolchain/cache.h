// Compiled artifacts by content: <cache>/artifacts/<kk>/<key>/{artifact,meta.json}, with a
// cubin its PTX.
//
// An entry appears by one rename of a folder whose files are synced, so a reader sees a whole entry
// or none. The key's lock (flock) is held from the second look to the rename: one compile of a key
// at a time, over threads and processes; a killed process frees it. Scratch folders carry their key
// in their name and are swept by whoever finds that key's lock free.
#ifndef HONE_TOOLCHAIN_CACHE_H
#define HONE_TOOLCHAIN_CACHE_H

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "toolchain/toolchain.h"

namespace hone {

class ArtifactCache {
 public:
  explicit ArtifactCache(fs::path dir) : dir_(std::move(dir)) {}

  // A hit whose sha256 is the one recorded and whose system headers are unchanged. An entry that is
  // torn, corrupted or stale is not returned; whoever holds the key's lock replaces it.
  std::optional<Artifact> find(const std::string& key) const;

  Result<FileLock> lock(const std::string& key) const;
  // The caller holds the key's lock for the two below. `scratch` begins empty.
  Result<fs::path> scratch(const std::string& key) const;
  struct Product {
    ArtifactKind kind;
    std::string_view bytes, ptx;   // ptx: with a cubin
  };
  // Moves the product into place. `artifact` gets path, ptx, sha256 and key. `headers` are files of the
  // system that were read.
  Result<Artifact> publish(const std::string& key, const fs::path& scratch, Artifact artifact, const Product& product,
                           const std::vector<std::string>& headers) const;
  // Removes abandoned scratch folders of other keys.
  void sweep(const std::string& own_key) const;

 private:
  fs::path entry(const std::string& key) const { return dir_ / "artifacts" / key.substr(0, 2) / key; }
  fs::path dir_;
};

// The absolute paths in a compiler's dependency file (make syntax).
std::vector<std::string> system_headers(std::string_view dependency_file);

}  // namespace hone

#endif
