// Small pieces of text that people type: durations, sizes, budgets, near misses.
#ifndef HONE_BASE_TEXT_H
#define HONE_BASE_TEXT_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

// "90" (seconds), "90s", "1.5h", "1h30m", "PT6H", "HH:MM:SS". Seconds. Kind usage on error.
Result<double> parse_duration(std::string_view text);
// "1048576", "64K", "1GiB", "1GB". Bytes.
Result<std::uint64_t> parse_size(std::string_view text);
// "3", "3.0x". A ratio above 0.
Result<double> parse_ratio(std::string_view text);
// "evaluations=60,time=120s": keys must be in `known`.
Result<std::map<std::string, std::string>> parse_pairs(std::string_view text, const std::vector<std::string>& known);

std::string format_duration(double seconds);   // "1h30m", "12.3 s", "450 ms"
std::string format_bytes(std::uint64_t bytes); // "3.0 GiB"
// As a shell takes it for one word: quoted when it must be.
std::string shell_word(const std::string& word);
// The nearest of `known` by edit distance, when it is near enough to suggest; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace hone

#endif
