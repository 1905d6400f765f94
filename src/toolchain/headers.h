// Headers of other projects that a task's own kernel programs are compiled with: `needs: deepgemm` of a baseline in
// task.yaml. Hone ships none of them. They come from a pinned wheel, into the user's data directory.
#ifndef HONE_TOOLCHAIN_HEADERS_H
#define HONE_TOOLCHAIN_HEADERS_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

// What `hone toolchain add NAME` fetches, and from where.
struct HeaderPackage {
  std::string_view name;                        // "deepgemm"
  std::string_view variable;                    // "HONE_DEEPGEMM": the root of an unpacked wheel, instead of place_of()
  std::string_view project, version;            // of the wheel, on PyPI
  std::string_view file, file_sha256;           // the wheel
  std::string_view include;                     // the include directory, below the wheel's root
  std::vector<std::string_view> folders;        // below `include`: what is wanted of it
  std::string_view sha256;                      // of those folders, as headers_sha256 counts
  std::string_view licence;                     // to show before anything is fetched
};

const std::vector<HeaderPackage>& header_packages();
const HeaderPackage* find_header_package(std::string_view name);

// Where the unpacked wheel lies unless the package's variable names another place:
// data_dir()/toolchains/deepgemm-0.2.5.
fs::path place_of(const HeaderPackage& package);

// The folder that the package's variable names; nullopt where it is unset or empty.
std::optional<fs::path> named_place(const HeaderPackage& package);

// The include directory. Kind environment: the package is not installed, or its variable names a folder without it.
Result<fs::path> find_headers(const HeaderPackage& package);

// "0.2.5", or "not 0.2.5" where the files are others. Reads them all.
std::string version_of(const HeaderPackage& package, const fs::path& include);

// One hash of all files below the wanted folders. Reads them all.
Result<std::string> headers_sha256(const HeaderPackage& package, const fs::path& include);

}  // namespace hone

#endif
