#include "supply/unpack.h"

#include <fcntl.h>
#include <minizip/unzip.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace hone {
namespace {

constexpr std::size_t kLongestName = 1024;

Error broken(const fs::path& archive, std::string_view why) {
  return make_error(ErrorKind::environment, "{} cannot be unpacked: {}", archive.filename().string(), why);
}

// Where an entry goes, relative to the toolkit; empty: nowhere.
fs::path place_of(const std::string& name, const std::string& folder, const std::string& below, const std::string& archive) {
  if (name.starts_with(folder)) return below + name.substr(folder.size());
  const std::size_t mark = name.find(".dist-info/licenses/");
  return mark == std::string::npos ? fs::path() : fs::path("licenses") / archive / fs::path(name).filename();
}

bool stays_inside(const fs::path& place) {
  return place.is_relative() &&
         std::none_of(place.begin(), place.end(), [](const fs::path& part) { return part == ".." || part == "."; }) &&
         place.string().find('\\') == std::string::npos;
}

// The current entry's bytes into a new file.
Result<> extract(unzFile zip, const fs::path& archive, const fs::path& to, unsigned mode) {
  HONE_CHECK(make_dirs(to.parent_path()));
  if (unzOpenCurrentFile(zip) != UNZ_OK) return fail(broken(archive, "an entry cannot be opened"));
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return fail(io_error("write", to));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* each) { ::close(*each); });
  std::string piece(std::size_t{1} << 20, '\0');
  for (int n; (n = unzReadCurrentFile(zip, piece.data(), static_cast<unsigned>(piece.size()))) != 0;) {
    if (n < 0) return fail(broken(archive, "an entry is damaged"));
    for (std::string_view left(piece.data(), static_cast<std::size_t>(n)); !left.empty();) {
      const ssize_t written = ::write(fd, left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(io_error("write", to));
      left.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (unzCloseCurrentFile(zip) != UNZ_OK) return fail(broken(archive, "an entry's checksum is wrong"));
  return {};
}

}  // namespace

Result<> unpack_wheel(const fs::path& archive, const std::string& folder, const std::string& below, const fs::path& into, const std::atomic<bool>* cancel) {
  const std::unique_ptr<void, int (*)(unzFile)> zip(unzOpen64(archive.c_str()), &unzClose);
  if (!zip) return fail(broken(archive, "it is no zip archive"));
  const std::string own = archive.filename().string(), project = own.substr(0, own.find('-'));
  for (int code = unzGoToFirstFile(zip.get()); code != UNZ_END_OF_LIST_OF_FILE; code = unzGoToNextFile(zip.get())) {
    if (code != UNZ_OK) return fail(broken(archive, "its list of files is damaged"));
    if (cancel != nullptr && cancel->load()) return fail(ErrorKind::cancelled, "stopped while unpacking {}", own);
    unz_file_info64 info = {};
    std::string name(kLongestName, '\0');
    if (unzGetCurrentFileInfo64(zip.get(), &info, name.data(), name.size(), nullptr, 0, nullptr, 0) != UNZ_OK ||
        info.size_filename >= name.size())
      return fail(broken(archive, "a name is damaged or too long"));
    name.resize(info.size_filename);
    if (name.ends_with('/')) continue;
    const fs::path place = place_of(name, folder, below, project);
    if (place.empty()) continue;
    const auto mode = static_cast<mode_t>(info.external_fa >> 16);
    if (!stays_inside(place)) return fail(broken(archive, "a name leaves its folder: " + name));
    if (S_ISLNK(mode)) return fail(broken(archive, "it holds a link: " + name));
    HONE_CHECK(extract(zip.get(), archive, into / place, (mode & S_IXUSR) != 0 ? 0755 : 0644));
  }
  return {};
}

}  // namespace hone
