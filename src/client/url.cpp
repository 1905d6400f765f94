#include "client/url.h"

#include <algorithm>

namespace hone::client {

Result<Url> parse_url(const std::string& text) {
  const auto wrong = [&](const char* why) {
    return fail(make_error(ErrorKind::usage, "{} is not a service's URL: {}", text, why).with_hint("for example http://127.0.0.1:8000"));
  };
  Url out;
  std::string rest;
  if (text.starts_with("http://")) rest = text.substr(7);
  else if (text.starts_with("https://")) rest = text.substr(8), out.tls = true;
  else return wrong("it does not begin with http:// or https://");
  if (rest.find_first_of("?#@") != std::string::npos) return wrong("it holds one of ? # @");
  const std::size_t slash = rest.find('/');
  if (slash != std::string::npos) out.path = rest.substr(slash), rest.resize(slash);
  while (out.path.ends_with('/')) out.path.pop_back();
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string::npos) return wrong("a bracket is not closed");
    out.host = rest.substr(1, end - 1);
    rest = rest.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') return wrong("something follows the bracket");
    if (!rest.empty()) out.port = rest.substr(1);
  } else {
    const std::size_t colon = rest.find(':');
    out.host = rest.substr(0, colon);
    if (colon != std::string::npos) out.port = rest.substr(colon + 1);
    if (colon != std::string::npos && out.port.empty()) return wrong("the port is missing");
  }
  if (out.host.empty()) return wrong("it names no host");
  if (out.port.empty()) out.port = out.tls ? "443" : "80";
  if (out.port.size() > 5 || !std::all_of(out.port.begin(), out.port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      std::stoi(out.port) < 1 || std::stoi(out.port) > 65535)
    return wrong("the port is not a number from 1 to 65535");
  return out;
}

std::string to_text(const Url& url) {
  const std::string host = url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  return (url.tls ? "https://" : "http://") + host + ":" + url.port + url.path;
}

}  // namespace hone::client
