#include "toolchain/headers.h"

#include <cstdlib>

#include "toolchain/toolchain.h"

namespace hone {
namespace {

constexpr TreeLimits kLargestPackage{.files = 8192, .bytes = std::size_t{256} << 20};

bool holds(const HeaderPackage& package, const fs::path& include) {
  std::error_code code;
  for (const std::string_view folder : package.folders)
    if (!fs::is_directory(include / folder, code)) return false;
  return true;
}

}  // namespace

const std::vector<HeaderPackage>& header_packages() {
  static const std::vector<HeaderPackage> packages = {
      {.name = "deepgemm",
       .variable = "HONE_DEEPGEMM",
       .project = "sgl-deep-gemm",
       .version = "0.2.5",
       .file = "sgl_deep_gemm-0.2.5-py3-none-manylinux2014_x86_64.whl",
       .file_sha256 = "e13778e53f682b806dd2c799b5ad81701114d9346044643a8df7589a845f34e6",
       .include = "deep_gemm/include",
       .folders = {"cute", "cutlass", "deep_gemm"},
       .sha256 = "5cde89d75448c0da30f40d91e3ce15e07d6fad3e5a9a9671c092e66a3e6a54c7",
       .licence = "Apache-2.0 (the wheel's own statement; the project that it was forked from is MIT), with headers of CUTLASS, BSD-3-Clause"}};
  return packages;
}

const HeaderPackage* find_header_package(std::string_view name) {
  for (const HeaderPackage& each : header_packages())
    if (each.name == name) return &each;
  return nullptr;
}

fs::path place_of(const HeaderPackage& package) {
  return data_dir() / "toolchains" / fmt::format("{}-{}", package.name, package.version);
}

std::optional<fs::path> named_place(const HeaderPackage& package) {
  const char* named = std::getenv(std::string(package.variable).c_str());
  return named != nullptr && *named != '\0' ? std::optional<fs::path>(named) : std::nullopt;
}

Result<fs::path> find_headers(const HeaderPackage& package) {
  std::error_code code;
  const std::optional<fs::path> named = named_place(package);
  const fs::path include = named.value_or(place_of(package)) / package.include;
  if (holds(package, include)) return fs::canonical(include, code);
  if (named)
    return fail(make_error(ErrorKind::environment, "{} is {}, where {} does not hold {}", package.variable, named->string(), package.include,
                           fmt::join(package.folders, ", "))
                    .with_hint(fmt::format("name the folder in which the wheel {} was unpacked, or unset {}", package.file, package.variable)));
  return fail(make_error(ErrorKind::environment, "not installed, `hone toolchain add {}`", package.name)
                  .with_hint(fmt::format("or unpack the wheel {} and name that folder in {}", package.file, package.variable)));
}

std::string version_of(const HeaderPackage& package, const fs::path& include) {
  const auto hash = headers_sha256(package, include);
  return (hash && *hash == package.sha256 ? "" : "not ") + std::string(package.version);
}

Result<std::string> headers_sha256(const HeaderPackage& package, const fs::path& include) {
  SourceTree all;
  for (const std::string_view folder : package.folders) {
    HONE_TRY(SourceTree files, read_tree(include / folder, kLargestPackage));
    for (auto& [name, bytes] : files) all.emplace(fmt::format("{}/{}", folder, name), std::move(bytes));
  }
  return hash_of(all);
}

}  // namespace hone
