#include "mcp/tool.h"

#include <algorithm>

namespace hone::mcp {
namespace {

using nlohmann::json;

std::size_t size_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace).size(); }

void cut(json& value, std::size_t text, std::size_t elements) {
  if (value.is_string()) {
    const std::string& whole = value.get_ref<const std::string&>();
    if (whole.size() > text) value = shortened(whole, text);
  } else if (value.is_array()) {
    if (value.size() > elements) value.erase(value.begin() + static_cast<std::ptrdiff_t>(elements), value.end());
    for (json& each : value) cut(each, text, elements);
  } else if (value.is_object()) {
    for (json& each : value) cut(each, text, elements);
  }
}

// Members of deeper objects go when nothing else helps: a map with thousands of keys.
void thin(json& value, std::size_t members, int depth) {
  if (!value.is_structured()) return;
  if (value.is_object() && depth > 0)
    while (value.size() > members) value.erase(std::prev(value.end()));
  for (json& each : value) thin(each, members, depth + 1);
}

}  // namespace

std::string shortened(const std::string& text, std::size_t limit_bytes) {
  static constexpr std::string_view kWord = " ... (cut)";
  if (text.size() <= limit_bytes) return text;
  std::size_t end = limit_bytes > kWord.size() ? limit_bytes - kWord.size() : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return text.substr(0, end) + std::string(kWord);
}

json shrunk(json facts, std::size_t limit_bytes) {
  if (size_of(facts) <= limit_bytes) return facts;
  facts["cut"] = true;
  for (std::size_t text = 2048, elements = 64; text >= 32; text /= 2, elements = std::max<std::size_t>(elements / 2, 1)) {
    cut(facts, text, elements);
    if (size_of(facts) <= limit_bytes) return facts;
  }
  for (std::size_t members = 32; members > 0; members /= 2) {
    thin(facts, members, 0);
    if (size_of(facts) <= limit_bytes) return facts;
  }
  return {{"cut", true}};
}

json result_of(const Answer& answer) {
  return {{"content", json::array({{{"type", "text"}, {"text", shortened(answer.text, kLongestText)}}})},
          {"structuredContent", shrunk(answer.facts, kLongestFacts)},
          {"isError", false}};
}

json result_of(const Error& error) {
  json out = result_of(Answer{to_text(error), {{"error", error}}});
  out["isError"] = true;
  return out;
}

json listing_of(const Tool& tool) {
  return {{"name", tool.name},
          {"title", tool.title},
          {"description", tool.description},
          {"inputSchema", tool.input},
          {"outputSchema", tool.output},
          {"annotations", {{"title", tool.title}, {"readOnlyHint", !tool.changes}, {"destructiveHint", false}, {"idempotentHint", !tool.changes}, {"openWorldHint", false}}}};
}

}  // namespace hone::mcp
