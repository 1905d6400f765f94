// Reading what a program printed: nothing in it is taken for granted.
#ifndef HONE_DRIVER_TEXT_H
#define HONE_DRIVER_TEXT_H

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

constexpr std::size_t kEventText = 4096;   // bytes of an event's text

// Valid UTF-8 of at most `limit` bytes; what was cut is said.
std::string clip(std::string_view text, std::size_t limit = kEventText);
// The first line that says something, clipped: a reason for a person.
std::string one_line(std::string_view text, std::size_t limit = 300);

// The member at the path, or null.
const nlohmann::json& at(const nlohmann::json& value, std::initializer_list<const char*> path);
// Its text; empty when it is none.
std::string text_at(const nlohmann::json& value, std::initializer_list<const char*> path);
// A whole number of 0 and more, when it is one.
std::optional<std::int64_t> count_at(const nlohmann::json& value, std::initializer_list<const char*> path);

}  // namespace hone

#endif
