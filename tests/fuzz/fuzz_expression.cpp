// Any text is a value or an error, and names_in agrees with evaluate about what is an expression.
#include <cstdlib>

#include "base/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const hone::ExpressionValues values = {{"M", {100}}, {"K", {7}}, {"rows", {1, 9, 200}}, {"none", {}}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = hone::evaluate(text, values);
  const auto names = hone::names_in(text);
  if (value && !names) std::abort();
  if (!value && value.error().message.empty()) std::abort();
  return 0;
}
