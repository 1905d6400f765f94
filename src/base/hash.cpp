#include "base/hash.h"

#include <openssl/evp.h>

namespace hone {

std::string sha256(std::string_view bytes) {
  unsigned char digest[32];
  unsigned int length = sizeof digest;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

FieldHash& FieldHash::add(std::string_view field) {
  bytes_ += fmt::format("{}:", field.size());
  bytes_ += field;
  return *this;
}

}  // namespace hone
