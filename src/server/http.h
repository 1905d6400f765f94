// HTTP/1.1 without knowledge of what it serves: connections, limits, time-outs, TLS, long polls and event streams, on
// Boost.Beast. A slow, broken or hostile peer costs one connection for a bounded time and a bounded amount of memory.
#ifndef HONE_SERVER_HTTP_H
#define HONE_SERVER_HTTP_H

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/fs.h"

namespace hone::server {

struct HttpRequest {
  std::string method, path;                          // path: decoded, without the query
  std::map<std::string, std::string> query;          // decoded
  std::map<std::string, std::string> headers;        // names in lower case
  std::string body, peer, id;                        // id: X-Request-Id, or a new one
  std::string fault;                                 // why the target cannot be understood; empty: it can
  std::optional<std::uint64_t> length;               // Content-Length

  std::optional<std::string> header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json", body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// An answer that may take a while: `poll` is asked at once, whenever the topic is notified, and a last time (`last`)
// after `seconds`, when it must answer.
struct HttpWait {
  std::string topic;
  double seconds = 0;
  std::function<std::optional<HttpResponse>(bool last)> poll;
};

// Server-sent events: `next` gives what there is to say, whenever the topic is notified, until `end`.
struct HttpEvents {
  struct Part {
    std::string text;
    bool end = false;
  };
  std::string topic;
  std::function<Part()> next;
};

using HttpReply = std::variant<HttpResponse, HttpWait, HttpEvents>;

// What becomes of a request's body, decided from its head.
struct HttpBody {
  std::optional<HttpResponse> refusal;               // answered without reading the body
  std::uint64_t limit = 0;                           // bytes
  // When set, takes the body piece by piece instead of HttpRequest::body; an answer ends the request.
  std::function<std::optional<HttpResponse>(std::string_view piece)> sink;
  std::function<HttpResponse()> finish;              // with sink: instead of HttpApi::answer
};

// Called on a pool of threads; they may block.
struct HttpApi {
  std::function<HttpBody(const HttpRequest& head)> head;
  std::function<HttpReply(const HttpRequest& request)> answer;
  std::function<HttpResponse(int status, const std::string& message, const HttpRequest&)> refuse;   // broken requests
  std::function<void(const HttpRequest&, int status, double seconds)> done = [](const HttpRequest&, int, double) {};
  std::function<void(int)> connections = [](int) {};
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  unsigned short port = 0;                           // 0: any free one
  fs::path tls_cert, tls_key;                        // PEM; both or none
  int threads = 16;                                  // of the pool
  int connections = 1024;                            // beyond them those go that have said nothing for longest; or 503
  std::uint64_t body_bytes = std::uint64_t{256} << 20;   // of all bodies that are on their way; more are answered 503
  double head_s = 30, body_s = 30, write_s = 30;     // for a whole head; without progress of a body or an answer
};

class HttpServer {
 public:
  // Listens. Kinds environment (address in use, ...) and contract (certificate).
  static Result<std::unique_ptr<HttpServer>> start(const HttpOptions& options, HttpApi api);
  ~HttpServer();                                     // closes everything
  unsigned short port() const;
  void notify(const std::string& topic);             // any thread
  void stop_accepting();                             // and keep no connection alive

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace hone::server

#endif
