// Durations, sizes, ratios, lists of pairs and kernel names, as people and agents type them: any bytes
// are a value in its range or a usage error.
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "toolchain/kernel_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto refused = [](const hone::Error& error) {
    if (error.kind != hone::ErrorKind::usage || error.message.empty()) std::abort();
  };
  if (const auto seconds = hone::parse_duration(text); !seconds) refused(seconds.error());
  else if (!(*seconds >= 0 && *seconds <= 1e9) || hone::format_duration(*seconds).empty()) std::abort();
  if (const auto bytes = hone::parse_size(text); !bytes) refused(bytes.error());
  else if (hone::format_bytes(*bytes).empty()) std::abort();
  if (const auto ratio = hone::parse_ratio(text); !ratio) refused(ratio.error());
  else if (!(*ratio > 0) || !std::isfinite(*ratio)) std::abort();
  if (const auto pairs = hone::parse_pairs(text, {"time", "evaluations"}); !pairs) refused(pairs.error());
  else if (pairs->empty()) std::abort();
  if (hone::check_kernel_name(text)) (void)hone::split_kernel_name(text);
  return 0;
}
