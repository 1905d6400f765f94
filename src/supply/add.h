// `hone toolchain add`: a toolkit from a package index into the user's data folder.
//
// <toolchains>/<name> is the toolkit and appears, or takes an older one's place, by one rename of a synced folder.
// <toolchains>/.<name> holds downloads and what is being unpacked: left by a killed process, used by the next, removed at
// the end. One process at a time.
#ifndef HONE_SUPPLY_ADD_H
#define HONE_SUPPLY_ADD_H

#include <atomic>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/fs.h"
#include "supply/wheels.h"

namespace hone {

inline constexpr const char* kDefaultIndex = "https://pypi.org/simple";

struct AddOptions {
  std::string index = kDefaultIndex;                     // of PEP 503
  fs::path toolchains;                                   // the folder for all of them
  std::function<void(const std::string&)> progress;      // lines; may be empty
  const std::atomic<bool>* cancel = nullptr;
  double idle_s = 30, pause_s = 1;                       // of the network
};

// Whether the folder holds this very toolkit.
bool is_added(const Toolkit& toolkit, const fs::path& toolchains);

struct Added {
  fs::path root;
  bool was_there = false;                                // nothing was fetched
};
// Errors: as fetch_wheel and unpack_wheel; io when another process is adding it; usage for an index that is no URL.
Result<Added> add_toolkit(const Toolkit& toolkit, const AddOptions& options);

}  // namespace hone

#endif
