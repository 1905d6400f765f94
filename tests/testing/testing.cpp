#include "testing/testing.h"

#include <cstdlib>
#include <vector>

namespace hone::testing {
namespace {

fs::path from_env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) std::abort();   // run through ctest, which sets it
  return value;
}

}  // namespace

fs::path source_dir() { return from_env("HONE_SOURCE"); }
fs::path hone_binary() { return from_env("HONE_BIN"); }

fs::path scratch(const std::string& name) {
  static std::vector<ScratchDir> folders;
  auto folder = ScratchDir::create();
  if (!folder) std::abort();
  folders.push_back(*std::move(folder));
  const fs::path path = folders.back().path() / name;
  fs::create_directories(path);
  return path;
}

}  // namespace hone::testing
