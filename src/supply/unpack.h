// A wheel (a zip archive) into a folder.
#ifndef HONE_SUPPLY_UNPACK_H
#define HONE_SUPPLY_UNPACK_H

#include <atomic>
#include <string>

#include "base/error.h"
#include "base/fs.h"

namespace hone {

// Files below `folder` ("nvidia/cu13/") go to `below` in `into`, licences to `into`/licenses/<archive's name>/; the rest is left out.
// Kind environment: no archive, a damaged one, a name that leaves the folder, a link; io; cancelled.
Result<> unpack_wheel(const fs::path& archive, const std::string& folder, const std::string& below, const fs::path& into, const std::atomic<bool>* cancel);

}  // namespace hone

#endif
