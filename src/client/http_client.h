// One connection to a service, kept alive between requests. Not for several threads at once.
#ifndef HONE_CLIENT_HTTP_CLIENT_H
#define HONE_CLIENT_HTTP_CLIENT_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/url.h"

namespace hone::client {

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;        // names in lower case
  std::string body;
};

class HttpClient {
 public:
  explicit HttpClient(Url url);
  HttpClient(HttpClient&&) noexcept;
  ~HttpClient();

  // Kind unavailable: no connection, a broken one, or no answer within `timeout_s`; environment: a certificate that is
  // not trusted (SSL_CERT_FILE names further authorities). A request that broke may have been carried out.
  Result<HttpAnswer> send(const std::string& method, const std::string& target, const std::string& body,
                          const std::vector<std::pair<std::string, std::string>>& headers, double timeout_s);

  // GET whose body is given to `sink` piece by piece with the answer's head, and left out of the answer. An error of the
  // sink ends it. `timeout_s`: without news.
  using Sink = std::function<Result<>(const HttpAnswer& head, std::string_view piece)>;
  Result<HttpAnswer> get(const std::string& target, const std::vector<std::pair<std::string, std::string>>& headers, const Sink& sink, double timeout_s);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone::client

#endif
