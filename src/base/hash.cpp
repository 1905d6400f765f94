#include "base/hash.h"

#include <openssl/evp.h>

namespace hone {

std::string sha256(std::string_view bytes) {
  unsigned char digest[32];
  unsigned int length = sizeof digest;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  return to_hex({reinterpret_cast<const char*>(digest), sizeof digest});
}

FieldHash& FieldHash::add(std::string_view field) {
  bytes_ += fmt::format("{}:", field.size());
  bytes_ += field;
  return *this;
}

std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(16 * high + low);
  }
  return out;
}

}  // namespace hone
