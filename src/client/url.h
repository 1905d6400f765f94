// "http://host:8000", "https://host": where a service is.
#ifndef HONE_CLIENT_URL_H
#define HONE_CLIENT_URL_H

#include <string>

#include "base/error.h"

namespace hone::client {

struct Url {
  bool tls = false;
  std::string host, port;                  // of an IPv6 address: without brackets
  std::string path;                        // a prefix, without a "/" at its end
};

// Kind usage.
Result<Url> parse_url(const std::string& text);
std::string to_text(const Url& url);

}  // namespace hone::client

#endif
