// Any bytes are a document or a located error; every document can be checked against a schema and
// each of its values has a place.
#include <cstdlib>

#include "base/yaml.h"

namespace {

constexpr const char* kSchema = R"({
  "type": "object", "required": ["name"], "additionalProperties": false,
  "properties": {
    "name": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 20},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "kind": {"enum": ["input", "output"]},
    "list": {"type": "array", "maxItems": 4, "items": {"$ref": "#/definitions/item"}},
    "map": {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
  },
  "definitions": {"item": {"type": ["object", "boolean"], "properties": {"deep": {"type": "array", "items": {"$ref": "#/definitions/item"}}}}}
})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size > 16384) return 0;
  const auto document = hone::parse_yaml({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  if (!document) {
    if (document.error().kind != hone::ErrorKind::contract) std::abort();
    return 0;
  }
  for (const auto& [pointer, place] : document->places)
    if (place.line < 1 || place.column < 1) std::abort();
  const auto checked = hone::check_schema(*document, kSchema);
  if (!checked && checked.error().kind != hone::ErrorKind::contract) std::abort();
  return 0;
}
