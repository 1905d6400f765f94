#include "driver/text.h"

#include <fmt/format.h>

#include <cmath>

namespace hone {

using nlohmann::json;

std::string clip(std::string_view text, std::size_t limit) {
  const bool cut = text.size() > limit;
  // nlohmann replaces what is no UTF-8; a character that was cut in half is such a thing.
  std::string quoted = json(std::string(text.substr(0, limit))).dump(-1, ' ', false, json::error_handler_t::ignore);
  std::string out = json::parse(quoted).get<std::string>();
  if (cut) out += fmt::format("... ({} more bytes)", text.size() - limit);
  return out;
}

std::string one_line(std::string_view text, std::size_t limit) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  text.remove_prefix(begin);
  return clip(text.substr(0, text.find_first_of("\r\n")), limit);
}

const json& at(const json& value, std::initializer_list<const char*> path) {
  static const json nothing;
  const json* here = &value;
  for (const char* name : path) {
    if (!here->is_object()) return nothing;
    const auto found = here->find(name);
    if (found == here->end()) return nothing;
    here = &*found;
  }
  return *here;
}

std::string text_at(const json& value, std::initializer_list<const char*> path) {
  const json& found = at(value, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::optional<std::int64_t> count_at(const json& value, std::initializer_list<const char*> path) {
  const json& found = at(value, path);
  if (!found.is_number() || (found.is_number_float() && !(std::abs(found.get<double>()) < 9e15))) return std::nullopt;
  const auto count = found.get<std::int64_t>();
  if (count < 0) return std::nullopt;
  return count;
}

}  // namespace hone
