// One file from the network, verified, in the face of broken connections.
#ifndef HONE_SUPPLY_DOWNLOAD_H
#define HONE_SUPPLY_DOWNLOAD_H

#include <atomic>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/fs.h"
#include "client/url.h"
#include "supply/wheels.h"

namespace hone {

struct Fetching {
  std::function<void(std::uint64_t bytes)> progress;     // of this file so far; may be empty
  const std::atomic<bool>* cancel = nullptr;
  int tries = 4;                                         // without a byte of news before giving up
  double idle_s = 30, pause_s = 1;
};

// A whole small page. Redirects are followed, but not from https to http. Kind unavailable: no whole answer.
Result<std::string> fetch_page(const client::Url& url, const Fetching& how);

// Whether the file holds the wheel's very bytes.
bool is_fetched(const Wheel& wheel, const fs::path& file);

// Makes `to` hold the wheel. What came of it before lies in `to`.part and is not fetched again. Errors: unavailable (not
// reachable or it breaks off: the part stays), io (disk full: the part stays), environment (another size or hash: the part
// is removed), cancelled.
Result<> fetch_wheel(const client::Url& url, const Wheel& wheel, const fs::path& to, const Fetching& how);

}  // namespace hone

#endif
