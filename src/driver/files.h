// Files below a folder, on behalf of a program that must not reach beyond it: what it asks for is opened relative to the
// folder by the kernel (no "..", no link that leads out), and only regular files are read or written.
#ifndef HONE_DRIVER_FILES_H
#define HONE_DRIVER_FILES_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

class Enclosure {
 public:
  // `hidden`: paths that count as missing, whether or not they lie below the folder.
  Enclosure(const fs::path& folder, std::vector<fs::path> hidden);

  // Whether a path, absolute or from the folder, lies below it; links are followed as far as they exist.
  bool holds(const fs::path& path) const;

  static constexpr std::size_t kLimit = std::size_t{8} << 20;   // bytes of one file
  // Lines from `line` (from 1), at most `count`. Kinds forbidden (outside), io, output_limit (beyond kLimit).
  Result<std::string> read(const fs::path& path, std::int64_t line = 1, std::optional<std::int64_t> count = {}) const;
  // Replaces or creates; missing folders are made. The same kinds.
  Result<> write(const fs::path& path, std::string_view text) const;

 private:
  Result<int> open(const fs::path& path, int flags) const;
  fs::path folder_;
  std::vector<fs::path> hidden_;
};

}  // namespace hone

#endif
