// Copies of files of the record where nobody else reaches them: in a file without a name. What somebody changed or
// removed is put back as it was.
#ifndef HONE_RUN_SAFE_H
#define HONE_RUN_SAFE_H

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

class Safe {
 public:
  static Result<Safe> create();
  Safe(Safe&& other) noexcept : fd_(std::exchange(other.fd_, -1)), end_(other.end_), kept_(std::move(other.kept_)) {}
  Safe& operator=(Safe&&) = delete;
  ~Safe();

  // Remembers the file as it is now. A file that is kept already stays as it was first kept.
  Result<> keep(const fs::path& path);
  // Every file directly in `folder` that is not kept yet.
  Result<> keep_folder(const fs::path& folder);
  // Puts back what changed; gives the paths. A file is read again only when the system says that it was touched.
  Result<std::vector<fs::path>> mend();

 private:
  struct Copy {
    std::size_t offset = 0, size = 0;
    struct stat seen = {};
  };
  explicit Safe(int fd) : fd_(fd) {}
  Result<std::string> bytes_of(const Copy& copy) const;

  int fd_ = -1;
  std::size_t end_ = 0;
  std::map<fs::path, Copy> kept_;
};

}  // namespace hone

#endif
