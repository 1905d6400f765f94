#include "run/budget.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace hone {
namespace {

const std::vector<std::string>& keys() {
  static const std::vector<std::string> known = {"evaluations", "time", "duration", "turns", "tokens", "cost"};
  return known;
}

Result<double> parse_amount(const std::string& key, const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = key != "cost";
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0 || value > 1e15 ||
      (whole && value != std::floor(value)))
    return fail(make_error(ErrorKind::usage, "budget {}={} is not {}", key, text, whole ? "a whole number above 0" : "a number above 0")
                    .with_hint("for example --budget evaluations=60,time=120s"));
  return value;
}

}  // namespace

std::optional<double> Budget::limit(const std::string& key) const {
  const auto found = limits.find(key);
  return found == limits.end() ? std::nullopt : std::optional<double>(found->second);
}

std::optional<std::int64_t> Budget::evaluations() const {
  const auto value = limit("evaluations");
  return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
}

Budget Budget::with(const Budget& changed) const {
  Budget sum = *this;
  for (const auto& [key, value] : changed.limits) sum.limits[key] = value;
  return sum;
}

Result<Budget> parse_budget(std::string_view text) {
  Budget budget;
  if (text.empty()) return budget;
  HONE_TRY(const auto pairs, parse_pairs(text, keys()));
  for (const auto& [key, value] : pairs) {
    const bool time = key == "time" || key == "duration";
    const std::string name = time ? "time" : key;
    if (budget.limits.count(name) != 0) return fail(ErrorKind::usage, "budget {} is given twice", name);
    HONE_TRY(budget.limits[name], time ? parse_duration(value) : parse_amount(key, value));
  }
  return budget;
}

std::string to_text(const Budget& budget) {
  std::string text;
  for (const auto& [key, value] : budget.limits) {
    if (!text.empty()) text += ",";
    text += key + "=" + (key == "time" ? format_duration(value) : fmt::format("{}", value));
  }
  return text.empty() ? "none" : text;
}

void to_json(nlohmann::json& out, const Budget& budget) {
  out = nlohmann::json::object();
  for (const auto& [key, value] : budget.limits) out[key] = value;
}

void from_json(const nlohmann::json& in, Budget& budget) {
  budget = {};
  for (const auto& [key, value] : in.items())
    if (value.is_number()) budget.limits[key] = value.get<double>();
}

}  // namespace hone
