#include "client/http_client.h"

#include "base/clock.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <cctype>
#include <optional>

namespace hone::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ssl = asio::ssl;
using tcp = asio::ip::tcp;
using asio::awaitable;
using boost::system::error_code;

constexpr std::uint64_t kLargestAnswer = std::uint64_t{512} << 20;
constexpr double kConnect_s = 10;

constexpr std::size_t kPiece = std::size_t{256} << 10;

template <class Message>
HttpAnswer head_of(const Message& message) {
  HttpAnswer answer;
  answer.status = static_cast<int>(message.result_int());
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    answer.headers[name] = std::string(field.value());
  }
  return answer;
}

}  // namespace

class HttpClient::Impl {
 public:
  explicit Impl(Url url) : url_(std::move(url)), tls_(ssl::context::tls_client) {
    if (!url_.tls) return;
    error_code ignored;
    tls_.set_default_verify_paths(ignored);
    tls_.set_verify_mode(ssl::verify_peer);
  }

  Result<HttpAnswer> send(const std::string& method, const std::string& target, const std::string& body,
                          const std::vector<std::pair<std::string, std::string>>& headers, double timeout_s, const Sink* sink = nullptr) {
    http::request<http::string_body> request(http::verb::unknown, url_.path + target, 11);
    request.method_string(method);
    request.set(http::field::host, url_.host.find(':') == std::string::npos ? url_.host : "[" + url_.host + "]");
    request.set(http::field::user_agent, "hone");
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = body;
    request.prepare_payload();
    Result<HttpAnswer> out = fail(ErrorKind::internal, "no answer");
    io_.restart();
    asio::co_spawn(
        io_, [&]() -> awaitable<void> { co_await exchange(request, timeout_s, sink, out); },
        [&](std::exception_ptr fault) {
          if (fault) out = fail(ErrorKind::unavailable, "the connection to {} broke", to_text(url_));
        });
    io_.run();
    if (!out) close();
    return out;
  }

 private:
  beast::tcp_stream& lowest() { return url_.tls ? beast::get_lowest_layer(*secure_) : *plain_; }
  bool open() const { return plain_ || secure_; }
  void close() {
    plain_.reset();
    secure_.reset();
    buffer_.clear();
  }

  awaitable<void> exchange(const http::request<http::string_body>& request, double timeout_s, const Sink* sink, Result<HttpAnswer>& out) {
    // A connection that was kept may have been closed meanwhile: then once more on a new one.
    for (const bool kept = open();;) {
      const bool reused = open();
      if (!reused) {
        Result<> connected;
        co_await connect(connected);
        if (!connected) {
          out = fail(std::move(connected).error());
          co_return;
        }
      }
      bool nothing_came = false;
      if (url_.tls) co_await once(*secure_, request, timeout_s, sink, out, nothing_came);
      else co_await once(*plain_, request, timeout_s, sink, out, nothing_came);
      if (out || !kept || !reused || !nothing_came) co_return;
      close();
    }
  }

  awaitable<void> connect(Result<>& out) {
    const auto failed = [&](const char* what, const error_code& code) {
      out = fail(make_error(ErrorKind::unavailable, "cannot {} {}: {}", what, to_text(url_), code.message())
                     .with_hint("is `hone serve` running there?"));
    };
    error_code code;
    tcp::resolver resolver(io_);
    const auto found = co_await resolver.async_resolve(url_.host, url_.port, asio::redirect_error(asio::use_awaitable, code));
    if (code) {
      failed("find", code);
      co_return;
    }
    if (url_.tls) secure_.emplace(io_, tls_);
    else plain_.emplace(io_);
    lowest().expires_after(as_duration(kConnect_s));
    co_await lowest().async_connect(found, asio::redirect_error(asio::use_awaitable, code));
    if (code) {
      failed("reach", code);
      co_return;
    }
    lowest().socket().set_option(tcp::no_delay(true), code);
    if (!url_.tls) co_return;
    ::SSL_ctrl(secure_->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(url_.host.c_str()));
    secure_->set_verify_callback(ssl::host_name_verification(url_.host));
    co_await secure_->async_handshake(ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, code));
    // A peer that goes away is busy or stopping; one that answers and is not trusted stays so.
    const bool gone = code == asio::error::eof || code == asio::error::connection_reset || code == asio::error::broken_pipe ||
                      code == ssl::error::stream_truncated || code == beast::error::timeout;
    if (code && gone) failed("open a secure connection to", code);
    else if (code)
      out = fail(make_error(ErrorKind::environment, "no trusted connection to {}: {}", to_text(url_), code.message())
                     .with_hint("SSL_CERT_FILE can name the certificate of the service's authority"));
  }

  template <class Stream>
  awaitable<void> once(Stream& stream, const http::request<http::string_body>& request, double timeout_s, const Sink* sink, Result<HttpAnswer>& out,
                       bool& nothing_came) {
    const auto failed = [&](const char* what, const error_code& code) {
      out = fail(make_error(ErrorKind::unavailable, "{} {}: {}", what, to_text(url_), code == beast::error::timeout ? "it takes too long" : code.message()));
    };
    error_code code;
    lowest().expires_after(as_duration(timeout_s));
    co_await http::async_write(stream, request, asio::redirect_error(asio::use_awaitable, code));
    const error_code written = code;       // a server may have answered before it had read everything
    if (sink != nullptr) {
      co_await stream_body(stream, *sink, timeout_s, out, nothing_came);
      co_return;
    }
    http::response_parser<http::string_body> parser;
    parser.body_limit(kLargestAnswer);
    if (request.method_string() == "HEAD") parser.skip(true);
    code = {};
    co_await http::async_read(stream, buffer_, parser, asio::redirect_error(asio::use_awaitable, code));
    if (code) {
      nothing_came = !parser.got_some() && code != beast::error::timeout;
      failed(written ? "cannot send to" : "no whole answer from", written ? written : code);
      co_return;
    }
    HttpAnswer answer = head_of(parser.get());
    answer.body = std::move(parser.get().body());
    const bool keep = parser.get().keep_alive() && !written;
    out = std::move(answer);
    if (!keep) close();
  }

  template <class Stream>
  awaitable<void> stream_body(Stream& stream, const Sink& sink, double idle_s, Result<HttpAnswer>& out, bool& nothing_came) {
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    error_code code;
    const auto failed = [&] {
      nothing_came = !parser.got_some() && code != beast::error::timeout;
      out = fail(make_error(ErrorKind::unavailable, "no whole answer from {}: {}", to_text(url_), code == beast::error::timeout ? "it takes too long" : code.message()));
    };
    co_await http::async_read_header(stream, buffer_, parser, asio::redirect_error(asio::use_awaitable, code));
    if (code) {
      failed();
      co_return;
    }
    HttpAnswer head = head_of(parser.get());
    std::string piece(kPiece, '\0');
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      lowest().expires_after(as_duration(idle_s));
      co_await http::async_read(stream, buffer_, parser, asio::redirect_error(asio::use_awaitable, code));
      if (code == http::error::need_buffer) code = {};
      // What came before a broken connection counts: a download goes on from there.
      if (const auto taken = sink(head, std::string_view(piece.data(), piece.size() - parser.get().body().size)); !taken) {
        out = fail(taken.error());
        co_return;
      }
      if (code) {
        failed();
        co_return;
      }
    }
    const bool keep = parser.get().keep_alive();
    out = std::move(head);
    if (!keep) close();
  }

  const Url url_;
  asio::io_context io_{1};
  ssl::context tls_;
  std::optional<beast::tcp_stream> plain_;
  std::optional<beast::ssl_stream<beast::tcp_stream>> secure_;
  beast::flat_buffer buffer_;
};

HttpClient::HttpClient(Url url) : impl_(std::make_unique<Impl>(std::move(url))) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::send(const std::string& method, const std::string& target, const std::string& body,
                                    const std::vector<std::pair<std::string, std::string>>& headers, double timeout_s) {
  return impl_->send(method, target, body, headers, timeout_s);
}

Result<HttpAnswer> HttpClient::get(const std::string& target, const std::vector<std::pair<std::string, std::string>>& headers, const Sink& sink,
                                   double timeout_s) {
  return impl_->send("GET", target, "", headers, timeout_s, &sink);
}

}  // namespace hone::client
