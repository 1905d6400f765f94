#include "server/http.h"

#include <arpa/inet.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/version.hpp>
#include <cctype>
#include <list>
#include <set>
#include <thread>

#include "base/clock.h"

namespace hone::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ssl = asio::ssl;
using tcp = asio::ip::tcp;
using asio::awaitable;
using boost::system::error_code;

constexpr std::uint32_t kHeadBytes = 16384;
constexpr std::size_t kPiece = 65536;
constexpr double kSlowest = 16384;                   // bytes a second that a body must reach on the whole
constexpr double kKeepAlive_s = 15;                  // between comments in an event stream
constexpr double kLinger_s = 2;

// False: broken percent signs.
bool decode(std::string_view text, std::string& out, bool plus) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) return false;
      out += static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2]));
      i += 2;
    } else {
      out += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return true;
}

void read_target(std::string_view target, HttpRequest& out) {
  const std::size_t question = target.find('?');
  if (target.empty() || target[0] != '/' || !decode(target.substr(0, question), out.path, false)) {
    out.fault = "the target cannot be understood";
    out.path = "/";
    return;
  }
  if (question == std::string_view::npos) return;
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t equals = pair.find('=');
    std::string name, value;
    if (!decode(pair.substr(0, equals), name, true) || (equals != std::string_view::npos && !decode(pair.substr(equals + 1), value, true)))
      out.fault = "the query cannot be understood";
    else if (!out.query.emplace(name, value).second)
      out.fault = "a parameter is in the query twice";
  }
}

bool good_id(const std::string& id) {
  return !id.empty() && id.size() <= 64 &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

template <class Fields>
HttpRequest read_head(const Fields& fields, const std::string& peer) {
  HttpRequest out;
  out.peer = peer;
  out.method = std::string(fields.method_string());
  read_target(fields.target(), out);
  for (const auto& field : fields) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto [at, fresh] = out.headers.emplace(name, std::string(field.value()));
    if (!fresh) at->second += ", " + std::string(field.value());
  }
  out.id = out.header("x-request-id").value_or("");
  if (!good_id(out.id)) out.id = fmt::format("r-{:016x}", random_seed());
  return out;
}

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const HttpOptions& options, HttpApi api)
      : options_(options), api_(std::move(api)), acceptor_(io_), tls_(ssl::context::tls_server),
        pool_(static_cast<std::size_t>(options.threads)) {}

  Result<> listen() {
    if (!options_.tls_cert.empty()) {
      error_code code;
      tls_.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
      tls_.use_certificate_chain_file(options_.tls_cert.string(), code);
      if (code) return fail(make_error(ErrorKind::contract, "not a certificate: {}", code.message()).at({options_.tls_cert.string()}));
      tls_.use_private_key_file(options_.tls_key.string(), ssl::context::pem, code);
      if (code) return fail(make_error(ErrorKind::contract, "not its private key: {}", code.message()).at({options_.tls_key.string()}));
    }
    error_code code;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(options_.host, std::to_string(options_.port), tcp::resolver::passive, code);
    if (code || found.empty())
      return fail(make_error(ErrorKind::environment, "cannot listen on {}: {}", options_.host, code.message()).with_hint("--host takes an address of this machine"));
    const tcp::endpoint endpoint = *found.begin();
    const auto attempt = [&](const char* what) {
      return fail(make_error(ErrorKind::environment, "cannot {} {}:{}: {}", what, options_.host, options_.port, code.message())
                      .with_hint("another program may use the port; --port takes another, 0 any free one"));
    };
    acceptor_.open(endpoint.protocol(), code);
    if (code) return attempt("open a socket for");
    acceptor_.set_option(asio::socket_base::reuse_address(true), code);
    acceptor_.bind(endpoint, code);
    if (code) return attempt("bind");
    acceptor_.listen(1024, code);
    if (code) return attempt("listen on");
    port_ = acceptor_.local_endpoint().port();
    asio::co_spawn(io_, accept(), asio::detached);
    thread_ = std::thread([this] {
      for (;;) try {
          io_.run();
          return;
        } catch (...) {
          // A connection's fault is that connection's: the loop goes on.
        }
    });
    return {};
  }

  void stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    pool_.join();
  }
  void stop_accepting() {
    closing_ = true;
    asio::post(io_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
  }
  void notify(const std::string& topic) {
    asio::post(io_, [this, topic] {
      const auto [first, last] = waiters_.equal_range(topic);
      for (auto at = first; at != last; ++at) {
        at->second->fired = true;
        at->second->timer.cancel();
      }
    });
  }
  unsigned short port() const { return port_; }

 private:
  struct Waiter {
    explicit Waiter(asio::io_context& io) : timer(io) {}
    asio::steady_timer timer;
    bool fired = false;
  };
  // On the topic's list while it lives; the loop's thread alone.
  struct Subscription {
    Subscription(Impl& owner_, const std::string& topic) : owner(owner_), waiter(owner_.io_), at(owner_.waiters_.emplace(topic, &waiter)) {}
    ~Subscription() { owner.waiters_.erase(at); }
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    // False: the time is over.
    awaitable<bool> wait(double s) {
      if (!waiter.fired) {
        waiter.timer.expires_after(as_duration(std::max(0.0, s)));
        error_code code;
        co_await waiter.timer.async_wait(asio::redirect_error(asio::use_awaitable, code));
      }
      co_return std::exchange(waiter.fired, false);
    }
    Impl& owner;
    Waiter waiter;
    std::multimap<std::string, Waiter*>::iterator at;
  };

  template <class Work>
  awaitable<std::invoke_result_t<Work>> on_pool(Work work) {
    co_return co_await asio::co_spawn(
        pool_, [&work]() -> awaitable<std::invoke_result_t<Work>> { co_return work(); }, asio::use_awaitable);
  }

  awaitable<void> accept() {
    for (;;) {
      error_code code;
      tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, code));
      if (code == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
      if (code) {                          // out of descriptors, say
        asio::steady_timer timer(io_, std::chrono::milliseconds(100));
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, code));
        continue;
      }
      if (connections_ >= options_.connections && !idle_.empty()) {
        idle_.front()->close();
        idle_.pop_front();
      } else if (connections_ >= options_.connections) {
        if (!options_.tls_cert.empty()) continue;   // closed: no answer can be read before a handshake
        static constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        socket.non_blocking(true, code);
        socket.write_some(asio::buffer(kBusy), code);
        continue;
      }
      asio::co_spawn(io_, connection(std::move(socket)), asio::detached);
    }
  }

  // On the list of connections that have no request under way, the longest silent first; the loop's thread alone.
  struct Idle {
    Idle(Impl& owner_, beast::tcp_stream& stream_) : owner(owner_), stream(stream_) { owner.idle_.push_back(&stream); }
    ~Idle() { owner.idle_.remove(&stream); }   // it may be gone from there already
    Idle(const Idle&) = delete;
    Idle& operator=(const Idle&) = delete;
    Impl& owner;
    beast::tcp_stream& stream;
  };
  // Bytes of a body in memory, counted while they are.
  struct Held {
    explicit Held(Impl& owner_) : owner(owner_) {}
    ~Held() { owner.held_bytes_ -= bytes; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    bool more(std::uint64_t count) {
      bytes += count;
      owner.held_bytes_ += count;
      return owner.held_bytes_ <= owner.options_.body_bytes;
    }
    Impl& owner;
    std::uint64_t bytes = 0;
  };

  awaitable<void> connection(tcp::socket socket) {
    struct Count {
      explicit Count(Impl& owner_) : owner(owner_) { owner.api_.connections(++owner.connections_); }
      ~Count() { owner.api_.connections(--owner.connections_); }
      Impl& owner;
    } const count(*this);
    error_code code;
    socket.set_option(tcp::no_delay(true), code);
    const auto remote = socket.remote_endpoint(code);
    const std::string peer = code ? "?" : remote.address().to_string();
    try {
      if (options_.tls_cert.empty()) {
        co_await serve(beast::tcp_stream(std::move(socket)), peer);
      } else {
        beast::ssl_stream<beast::tcp_stream> stream(std::move(socket), tls_);
        beast::get_lowest_layer(stream).expires_after(as_duration(options_.head_s));
        {
          const Idle idle(*this, beast::get_lowest_layer(stream));
          co_await stream.async_handshake(ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, code));
        }
        if (!code) co_await serve(std::move(stream), peer);
      }
    } catch (const std::exception&) {
      // A peer that is gone, or memory that is short: this connection ends, the others do not.
    }
  }

  template <class Stream>
  awaitable<void> serve(Stream stream, std::string peer) {
    beast::flat_buffer buffer(kPiece + kHeadBytes);
    auto& lowest = beast::get_lowest_layer(stream);
    for (bool keep = true; keep;) {
      http::request_parser<http::empty_body> head;
      head.header_limit(kHeadBytes);
      head.body_limit(boost::none);
      lowest.expires_after(as_duration(options_.head_s));
      error_code code;
      {
        const Idle idle(*this, lowest);
        co_await http::async_read_header(stream, buffer, head, asio::redirect_error(asio::use_awaitable, code));
      }
      const double begin = now_s();
      if (code) {
        if (code == http::error::header_limit || code.category() == error_code(http::error::bad_method).category()) {
          if (code == http::error::end_of_stream || code == http::error::partial_message) break;
          HttpRequest request;
          request.peer = peer;
          request.id = fmt::format("r-{:016x}", random_seed());
          const bool large = code == http::error::header_limit;
          const HttpResponse response = api_.refuse(large ? 431 : 400, large ? "the head is larger than 16 KiB" : "this is no HTTP/1.1: " + code.message(), request);
          co_await write(stream, response, request, false, false);
          api_.done(request, response.status, 0);
          co_await linger(stream, buffer);
        }
        break;
      }
      HttpRequest request = read_head(head.get(), peer);
      const bool is_head = head.get().method() == http::verb::head;
      keep = head.get().keep_alive() && !closing_;
      if (head.content_length()) request.length = *head.content_length();
      const bool chunked = head.get().chunked();
      HttpReply reply = HttpResponse();
      Held held(*this);
      bool broken = false;
      if (!request.fault.empty()) {
        reply = api_.refuse(400, request.fault, request);
        broken = true;
      } else {
        HttpBody plan = co_await on_pool([&] { return api_.head(request); });
        if (!plan.refusal && request.length && *request.length > plan.limit)
          plan.refusal = api_.refuse(413, fmt::format("the body has {} bytes, {} are allowed here", *request.length, plan.limit), request);
        if (plan.refusal) {
          reply = *std::move(plan.refusal);
          broken = chunked || (request.length && *request.length > 0);   // the body is still on its way
        } else if (chunked || (request.length && *request.length > 0)) {
          if (beast::iequals(head.get()[http::field::expect], "100-continue")) {
            static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
            co_await asio::async_write(stream, asio::buffer(kContinue), asio::redirect_error(asio::use_awaitable, code));
            if (code) break;
          }
          http::request_parser<http::buffer_body> body(std::move(head));
          body.body_limit(plan.limit);
          std::vector<char> piece(kPiece);
          std::optional<HttpResponse> early;
          const double body_begin = now_s();
          std::uint64_t got_bytes = 0;
          while (!body.is_done() && !early) {
            body.get().body().data = piece.data();
            body.get().body().size = piece.size();
            lowest.expires_after(as_duration(options_.body_s));
            co_await http::async_read(stream, buffer, body, asio::redirect_error(asio::use_awaitable, code));
            if (code == http::error::need_buffer) code = {};
            if (code) break;
            const std::size_t got = piece.size() - body.get().body().size;
            got_bytes += got;
            if (now_s() - body_begin > options_.body_s + static_cast<double>(got_bytes) / kSlowest) {
              code = beast::error::timeout;
              break;
            }
            const std::string_view text(piece.data(), got);
            if (plan.sink) early = co_await on_pool([&] { return plan.sink(text); });
            else if (held.more(got)) request.body += text;
            else early = api_.refuse(503, "too many large bodies are on their way", request);
          }
          if (early) {
            reply = *std::move(early);
            broken = !body.is_done();
          } else if (code == http::error::body_limit) {
            reply = api_.refuse(413, fmt::format("the body is larger than the {} bytes that are allowed here", plan.limit), request);
            broken = true;
          } else if (code == beast::error::timeout) {
            reply = api_.refuse(408, "the body came too slowly", request);
            broken = true;
            lowest.expires_after(as_duration(options_.write_s));
          } else if (code) {
            break;                         // torn off: nobody reads an answer
          } else {
            reply = co_await on_pool([&] { return plan.finish ? HttpReply(plan.finish()) : api_.answer(request); });
          }
        } else {
          reply = co_await on_pool([&] { return plan.finish ? HttpReply(plan.finish()) : api_.answer(request); });
        }
      }
      keep = keep && !broken;

      if (auto* wait = std::get_if<HttpWait>(&reply)) {
        // While it waits the connection may be silent.
        lowest.expires_never();
        Subscription subscription(*this, wait->topic);
        const double end = now_s() + wait->seconds;
        for (;;) {
          const bool last = now_s() >= end || closing_;
          auto answer = co_await on_pool([&] { return wait->poll(last); });
          if (answer) {
            reply = *std::move(answer);
            break;
          }
          co_await subscription.wait(std::min(1.0, end - now_s()));
        }
      }
      int status = 200;
      if (auto* events = std::get_if<HttpEvents>(&reply)) {
        keep = false;
        co_await write_events(stream, *events, request, is_head);
      } else {
        const HttpResponse& response = std::get<HttpResponse>(reply);
        status = response.status;
        if (!co_await write(stream, response, request, keep, is_head)) keep = false;
      }
      api_.done(request, status, now_s() - begin);
      if (broken) co_await linger(stream, buffer);
    }
    error_code ignored;
    if constexpr (!std::is_same_v<Stream, beast::tcp_stream>) {
      lowest.expires_after(as_duration(kLinger_s));
      co_await stream.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
    }
    lowest.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  template <class Fields>
  void put_fields(Fields& fields, const HttpRequest& request) {
    fields.set(http::field::server, "hone");
    fields.set("X-Request-Id", request.id);
    fields.set("X-Content-Type-Options", "nosniff");
    fields.set(http::field::cache_control, "no-store");
  }

  // False: the peer is gone.
  template <class Stream>
  awaitable<bool> write(Stream& stream, const HttpResponse& answer, const HttpRequest& request, bool keep, bool head_only) {
    http::response<http::string_body> response;
    response.version(11);
    response.result(static_cast<unsigned>(answer.status));
    put_fields(response, request);
    if (!answer.type.empty() && answer.status != 204) response.set(http::field::content_type, answer.type);
    for (const auto& [name, value] : answer.headers) response.set(name, value);
    response.keep_alive(keep);
    response.content_length(answer.body.size());
    if (!head_only) response.body() = answer.body;
    beast::get_lowest_layer(stream).expires_after(as_duration(options_.write_s + static_cast<double>(answer.body.size()) / kSlowest));
    error_code code;
    if (head_only) {
      http::response_serializer<http::string_body> serializer(response);
      co_await http::async_write_header(stream, serializer, asio::redirect_error(asio::use_awaitable, code));
    } else {
      co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, code));
    }
    co_return !code;
  }

  template <class Stream>
  awaitable<void> write_events(Stream& stream, HttpEvents& events, const HttpRequest& request, bool head_only) {
    http::response<http::empty_body> response;
    response.version(11);
    response.result(http::status::ok);
    put_fields(response, request);
    response.set(http::field::content_type, "text/event-stream");
    response.keep_alive(false);
    response.chunked(true);
    http::response_serializer<http::empty_body> serializer(response);
    auto& lowest = beast::get_lowest_layer(stream);
    error_code code;
    lowest.expires_after(as_duration(options_.write_s));
    co_await http::async_write_header(stream, serializer, asio::redirect_error(asio::use_awaitable, code));
    if (head_only) co_return;
    Subscription subscription(*this, events.topic);
    for (double said_s = now_s(); !code;) {
      HttpEvents::Part part = co_await on_pool([&] { return events.next(); });
      if (part.text.empty() && now_s() - said_s >= kKeepAlive_s) part.text = ":\n\n";
      if (!part.text.empty()) {
        said_s = now_s();
        lowest.expires_after(as_duration(options_.write_s));
        co_await asio::async_write(stream, http::make_chunk(asio::buffer(part.text)), asio::redirect_error(asio::use_awaitable, code));
      }
      if (part.end || closing_) break;
      lowest.expires_never();
      co_await subscription.wait(1.0);
    }
    lowest.expires_after(as_duration(options_.write_s));
    if (!code) co_await asio::async_write(stream, http::make_chunk_last(), asio::redirect_error(asio::use_awaitable, code));
  }

  // So that the peer can read the answer before its unread bytes become a reset.
  template <class Stream>
  awaitable<void> linger(Stream& stream, beast::flat_buffer& buffer) {
    auto& lowest = beast::get_lowest_layer(stream);
    error_code code;
    lowest.socket().shutdown(tcp::socket::shutdown_send, code);
    std::vector<char> sink(kPiece);
    buffer.clear();
    lowest.expires_after(as_duration(kLinger_s));
    for (code = {}; !code;) co_await lowest.async_read_some(asio::buffer(sink), asio::redirect_error(asio::use_awaitable, code));
  }

  const HttpOptions options_;
  const HttpApi api_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  ssl::context tls_;
  asio::thread_pool pool_;
  std::multimap<std::string, Waiter*> waiters_;
  std::list<beast::tcp_stream*> idle_;
  std::uint64_t held_bytes_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> closing_{false};
  unsigned short port_ = 0;
  std::thread thread_;
};

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { impl_->stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpOptions& options, HttpApi api) {
  auto impl = std::make_shared<Impl>(options, std::move(api));
  HONE_CHECK(impl->listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

unsigned short HttpServer::port() const { return impl_->port(); }
void HttpServer::notify(const std::string& topic) { impl_->notify(topic); }
void HttpServer::stop_accepting() { impl_->stop_accepting(); }

}  // namespace hone::server
