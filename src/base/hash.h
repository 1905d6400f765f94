// SHA-256 (FIPS 180-4) of bytes, as 64 lower-case hex digits.
#ifndef HONE_BASE_HASH_H
#define HONE_BASE_HASH_H

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

std::string sha256(std::string_view bytes);

// Two lower-case digits a byte, and back; nullopt: other characters, or half a byte.
std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view text);

// Hash of a sequence of fields: each is preceded by its length, so ("ab","c") differs from ("a","bc").
class FieldHash {
 public:
  FieldHash& add(std::string_view field);
  std::string hex() const { return sha256(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace hone

#endif
