#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace hone {
namespace {

// A plain decimal number at the start of `text`, consumed; no sign, exponent, inf or nan.
bool take_number(std::string_view& text, double& value) {
  std::size_t end = 0;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) ++end;
  if (end == 0 || end > 32) return false;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value, std::chars_format::fixed);
  if (error != std::errc{} || stop != text.data() + end) return false;
  text.remove_prefix(end);
  return true;
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}

struct Unit {
  char letter;
  double seconds;
};
constexpr std::array kUnits{Unit{'d', 86400}, Unit{'h', 3600}, Unit{'m', 60}, Unit{'s', 1}};

// "1h30m", "PT6H", "P1DT2H": units in falling order, each once.
bool parse_units(std::string_view text, double& seconds) {
  const bool iso = !text.empty() && lower(text[0]) == 'p';
  bool time_part = !iso;
  if (iso) text.remove_prefix(1);
  auto unit = kUnits.begin();
  bool any = false;
  seconds = 0;
  while (!text.empty()) {
    if (iso && !time_part && lower(text[0]) == 't') {
      time_part = true;
      text.remove_prefix(1);
      unit = std::max(unit, kUnits.begin() + 1);   // hours and below
    }
    double value = 0;
    if (!take_number(text, value) || text.empty()) return false;
    const char letter = lower(text[0]);
    text.remove_prefix(1);
    unit = std::find_if(unit, kUnits.end(), [&](const Unit& u) { return u.letter == letter; });
    if (unit == kUnits.end() || (iso && time_part == (letter == 'd'))) return false;
    seconds += value * unit->seconds;
    ++unit;
    any = true;
  }
  return any;
}

// "HH:MM:SS"
bool parse_clock(std::string_view text, double& seconds) {
  std::array<double, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!take_number(text, parts[i])) return false;
    if (i > 0 && parts[i] >= 60) return false;
    if (i < 2 && parts[i] != std::floor(parts[i])) return false;
    if (i < 2) {
      if (text.empty() || text[0] != ':') return false;
      text.remove_prefix(1);
    }
  }
  seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  return text.empty();
}

// Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

}  // namespace

Result<double> parse_duration(std::string_view text) {
  double seconds = 0;
  std::string_view rest = text;
  const bool plain = take_number(rest, seconds) && rest.empty();
  if (text.size() > 64 || (!plain && !parse_clock(text, seconds) && !parse_units(text, seconds)) || seconds > 1e9)
    return fail(make_error(ErrorKind::usage, "`{}` is not a duration", text.substr(0, 64))
                    .with_hint("write 90 (seconds), 90s, 1h30m, PT6H or HH:MM:SS"));
  return seconds;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  struct Suffix {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array kSuffixes{
      Suffix{"", 1},          Suffix{"b", 1},         Suffix{"k", 0x1p10},   Suffix{"m", 0x1p20},  Suffix{"g", 0x1p30},
      Suffix{"t", 0x1p40},    Suffix{"kib", 0x1p10},  Suffix{"mib", 0x1p20}, Suffix{"gib", 0x1p30}, Suffix{"tib", 0x1p40},
      Suffix{"kb", 1e3},      Suffix{"mb", 1e6},      Suffix{"gb", 1e9},     Suffix{"tb", 1e12}};
  std::string_view rest = text;
  double value = 0;
  if (text.size() <= 64 && take_number(rest, value)) {
    const std::string suffix = lower(rest);
    for (const auto& [name, bytes] : kSuffixes)
      if (suffix == name && value * bytes < 0x1p63) return static_cast<std::uint64_t>(std::llround(value * bytes));
  }
  return fail(make_error(ErrorKind::usage, "`{}` is not a size", text.substr(0, 64))
                  .with_hint("write bytes (1048576), or a number with K, M, G, KiB, MiB, GiB, KB, MB or GB"));
}

Result<double> parse_ratio(std::string_view text) {
  std::string_view rest = text;
  double value = 0;
  if (text.size() > 64 || !take_number(rest, value) || !(rest.empty() || rest == "x" || rest == "X") || !(value > 0) || value > 1e6)
    return fail(make_error(ErrorKind::usage, "`{}` is not a ratio", text.substr(0, 64)).with_hint("write 1.5 or 1.5x"));
  return value;
}

Result<std::map<std::string, std::string>> parse_pairs(std::string_view text, const std::vector<std::string>& known) {
  std::map<std::string, std::string> out;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == item.size())
      return fail(make_error(ErrorKind::usage, "`{}` is not of the form key=value", item.substr(0, 64))
                      .with_hint(fmt::format("known keys: {}", fmt::join(known, ", "))));
    const std::string key(item.substr(0, equals));
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = nearest(key, known);
      return fail(make_error(ErrorKind::usage, "unknown key `{}`", key.substr(0, 64))
                      .with_hint(near.empty() ? fmt::format("known keys: {}", fmt::join(known, ", "))
                                              : fmt::format("did you mean `{}`?", near)));
    }
    if (!out.emplace(key, item.substr(equals + 1)).second) return fail(ErrorKind::usage, "`{}` is given twice", key);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(seconds, 1e15)));
  const auto days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60, rest = whole % 60;
  if (days != 0) return hours != 0 ? fmt::format("{}d{}h", days, hours) : fmt::format("{}d", days);
  if (hours != 0) return minutes != 0 ? fmt::format("{}h{}m", hours, minutes) : fmt::format("{}h", hours);
  return rest != 0 ? fmt::format("{}m{}s", minutes, rest) : fmt::format("{}m", minutes);
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word)
    if (c == '\'') out += "'\\''";
    else out += c;
  return out + "'";
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > 256) return {};
  const std::string wanted = lower(word);
  std::string best;
  // One slip for a short word, a third of the letters for a long one.
  std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& name : known) {
    if (name.size() > 256) continue;
    const std::size_t distance = edit_distance(wanted, lower(name));
    if (distance < best_distance && distance < name.size()) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace hone
