// Where a package index keeps a file: the "simple" index of PEP 503, an HTML page a project.
#ifndef HONE_SUPPLY_INDEX_H
#define HONE_SUPPLY_INDEX_H

#include <string>
#include <string_view>

#include "base/error.h"
#include "client/url.h"

namespace hone {

// The absolute address that the page at `page` (its own URL, ending in "/") gives for `file`. Kind not_found. The page is hostile input.
Result<client::Url> find_in_page(std::string_view html, const client::Url& page, const std::string& file);

// `reference` as a link on the page `base` means it: absolute, or relative to host or folder. A fragment is dropped.
Result<client::Url> resolve_link(const client::Url& base, std::string_view reference);

}  // namespace hone

#endif
