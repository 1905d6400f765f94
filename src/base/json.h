// JSON from strangers: strict where nlohmann's parser is lenient, bounded where it is not.
#ifndef HONE_BASE_JSON_H
#define HONE_BASE_JSON_H

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

struct JsonLimits {
  std::size_t depth = 64;
  std::size_t values = 1'000'000;
};

// Kind contract: no JSON, no UTF-8, a key twice in one object, nested too deeply, too many values.
Result<nlohmann::json> parse_json(std::string_view text, JsonLimits limits = {});

// Whether JSON can hold these bytes as text.
bool is_utf8(const std::string& bytes);

}  // namespace hone

#endif
