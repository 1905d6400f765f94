// YAML as JSON, with the place of every value, checked against a JSON schema (draft 7).
#ifndef HONE_BASE_YAML_H
#define HONE_BASE_YAML_H

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

struct YamlDocument {
  nlohmann::json value;
  std::string file;
  std::map<std::string, Place> places;   // by JSON pointer: "/tensors/A/dtype"

  // The place of a value, or of the nearest enclosing one.
  Place place_of(std::string pointer) const;
};

// Plain scalars become numbers, booleans and null by YAML's core schema; quoted ones stay strings.
// Errors (kind contract): syntax, duplicate keys, aliases that expand without bound, deep nesting,
// invalid UTF-8; all located. `file` is what errors name.
Result<YamlDocument> parse_yaml(std::string_view text, const std::string& file);

// `schema` is JSON text. The error names the value's pointer, what is wrong and its place, and for
// an unknown key the nearest known one.
Result<> check_schema(const YamlDocument& document, std::string_view schema);

// The same check for JSON that Hone itself writes: the error says `what` it is in, and the file in `place`.
Result<> check_schema(const nlohmann::json& value, std::string_view schema, const std::string& what, const Place& place = {});

}  // namespace hone

#endif
