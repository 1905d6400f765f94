#include "server/api.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "contract/task.h"

namespace hone::server {
namespace {

using nlohmann::json;

constexpr std::uint64_t kJsonBytes = std::uint64_t{32} << 20, kBlobBytes = std::uint64_t{64} << 20;
constexpr double kLongestWait_s = 60;

int status_of(const Error& error, bool known_caller) {
  switch (error.kind) {
    case ErrorKind::usage:
    case ErrorKind::contract: return 400;
    case ErrorKind::unauthorized: return known_caller ? 403 : 401;
    case ErrorKind::not_found: return 404;
    case ErrorKind::conflict: return 409;
    case ErrorKind::quota: return 429;
    case ErrorKind::unavailable:
    case ErrorKind::io: return 503;         // a full disk, say: the request may be good later
    default: return 500;
  }
}

HttpResponse as_json(int status, const json& body) {
  return {status, "application/json", body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n", {}};
}

HttpResponse refusal(int status, const Error& error, const std::string& id) {
  json what;
  to_json(what, error);
  HttpResponse out = as_json(status, {{"schema", "hone.error/1"}, {"error", std::move(what)}, {"request_id", id}});
  if (status == 429 || status == 503) out.headers.emplace_back("Retry-After", status == 429 ? "1" : "2");
  if (status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

// A route's variable parts by name; nullopt: the path is another's.
std::optional<std::map<std::string, std::string>> match(std::string_view pattern, std::string_view path) {
  std::map<std::string, std::string> out;
  for (;;) {
    const std::size_t pattern_end = pattern.find('/', 1), path_end = path.find('/', 1);
    const std::string_view wanted = pattern.substr(0, pattern_end), given = path.substr(0, path_end);
    if (wanted.starts_with("/{")) {
      if (given.size() < 2) return std::nullopt;
      out[std::string(wanted.substr(2, wanted.size() - 3))] = given.substr(1);
    } else if (wanted != given) {
      return std::nullopt;
    }
    if (pattern_end == std::string_view::npos || path_end == std::string_view::npos) {
      if (pattern_end != path_end) return std::nullopt;
      return out;
    }
    pattern.remove_prefix(pattern_end);
    path.remove_prefix(path_end);
  }
}

struct Found {
  const Route* route = nullptr;            // null: `refusal` says why
  std::map<std::string, std::string> parts;
  std::string allowed;                     // methods of the path, when only the method is wrong
};

Found find_route(const std::string& method, const std::string& path) {
  Found out;
  for (const Route& each : routes()) {
    auto parts = match(each.path, path);
    if (!parts) continue;
    if (each.method == method || (method == "HEAD" && std::string_view(each.method) == "GET")) {
      out.route = &each;
      out.parts = *std::move(parts);
      return out;
    }
    out.allowed += (out.allowed.empty() ? "" : ", ") + std::string(each.method);
  }
  return out;
}

json task_json(const Task& task) {
  json ids = json::array();
  for (const Workload& each : task.workloads) ids.push_back(each.id);
  return {{"name", task.name}, {"sha256", task.sha256}, {"device", task.device}, {"summary", task.summary}, {"workloads", std::move(ids)}};
}

// Query parameters of a route: each is known and a number in its range.
class Query {
 public:
  explicit Query(const HttpRequest& request) : left_(request.query) {}

  template <class T>
  Result<std::optional<T>> number(const char* name, T least, T most) {
    const auto found = left_.find(name);
    if (found == left_.end()) return std::optional<T>();
    const std::string text = found->second;
    left_.erase(found);
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
      return fail(ErrorKind::usage, "{}: `{}` is not a number from {} to {}", name, text.substr(0, 64), least, most);
    return std::optional<T>(value);
  }
  Result<> nothing_else() const {
    if (left_.empty()) return {};
    return fail(ErrorKind::usage, "{}: there is no such parameter here", left_.begin()->first.substr(0, 64));
  }

 private:
  std::map<std::string, std::string> left_;
};

std::optional<std::string_view> secret_of(const HttpRequest& request) {
  const auto found = request.headers.find("authorization");
  if (found == request.headers.end()) return std::nullopt;
  std::string_view value = found->second;
  const std::size_t space = value.find(' ');
  std::string scheme(value.substr(0, space));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (scheme != "bearer" || space == std::string_view::npos) return std::string_view();
  return value.substr(space + 1);
}

bool is_loopback_v4(std::string_view text) {
  in_addr address = {};
  return ::inet_pton(AF_INET, std::string(text).c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

// "127.0.0.1:8000", "localhost", "[::1]:8000", also after "http://".
bool names_loopback(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) text.remove_prefix(scheme + 3);
  if (text.starts_with("[::1]")) return text.size() == 5 || text[5] == ':';
  text = text.substr(0, text.find(':'));
  return text == "localhost" || is_loopback_v4(text);
}

class Api {
 public:
  Api(Service& service, Log& log) : service_(service), log_(log) {}

  HttpBody head(const HttpRequest& request) {
    HttpBody out;
    const Found found = find_route(request.method, request.path);
    if (found.route == nullptr) {
      const bool method = !found.allowed.empty();
      out.refusal = refusal(method ? 405 : 404,
                            make_error(ErrorKind::not_found, "there is no {} {}", request.method.substr(0, 16), request.path.substr(0, 200))
                                .with_hint("/openapi.json lists what there is"),
                            request.id);
      if (method) out.refusal->headers.emplace_back("Allow", found.allowed);
      return out;
    }
    if (auto error = foreign(request, *found.route)) {
      out.refusal = refusal(403, *error, request.id);
      return out;
    }
    const auto caller = admit(request, *found.route);
    if (!caller) {
      out.refusal = refusal(status_of(caller.error(), false), caller.error(), request.id);
      return out;
    }
    const std::string method = request.method;
    if (method == "POST") out.limit = kJsonBytes;
    if (method != "PUT") return out;
    // A blob goes to the disk as it comes.
    const std::string sha256 = found.parts.at("sha256");
    out.limit = kBlobBytes;
    if (!is_sha256(sha256)) {
      out.refusal = refusal(404, make_error(ErrorKind::not_found, "{} is no SHA-256 in lower-case hex", json(sha256.substr(0, 80)).dump(-1, ' ', true, json::error_handler_t::replace)), request.id);
    } else if (!request.length) {
      out.refusal = refusal(411, make_error(ErrorKind::usage, "a blob's Content-Length must be told"), request.id);
    } else if (*request.length > kBlobBytes) {
      out.refusal = refusal(413, make_error(ErrorKind::usage, "the blob has {}, {} are allowed", format_bytes(*request.length), format_bytes(kBlobBytes)), request.id);
    } else {
      auto upload = service_.begin_blob(*caller, sha256, *request.length);
      if (!upload) {
        out.refusal = refusal(status_of(upload.error(), true), upload.error(), request.id);
        return out;
      }
      auto state = std::make_shared<Blobs::Upload>(*std::move(upload));
      const std::string id = request.id;
      out.sink = [state, id](std::string_view piece) -> std::optional<HttpResponse> {
        const auto kept = state->append(piece);
        if (!kept) return refusal(status_of(kept.error(), true), kept.error(), id);
        return std::nullopt;
      };
      out.finish = [this, state, id, sha256, who = *caller]() -> HttpResponse {
        const bool known = service_.has_blob(who, sha256);
        const std::uint64_t bytes = state->bytes();
        Result<> kept = state->finish();
        if (kept) kept = service_.own_blob(who, sha256, bytes);
        if (!kept) return refusal(kept.error().kind == ErrorKind::contract ? 409 : status_of(kept.error(), true), kept.error(), id);
        return as_json(known ? 200 : 201, {{"sha256", sha256}, {"bytes", bytes}});
      };
    }
    return out;
  }

  HttpReply answer(const HttpRequest& request) {
    try {
      const Found found = find_route(request.method, request.path);
      // Admitted when the head came; that was counted.
      Caller caller{std::nullopt, request.peer, request.id};
      if (const auto secret = secret_of(request); secret && !found.route->open) {
        auto known = service_.identify(*secret);
        if (!known) return refusal(401, make_error(ErrorKind::unauthorized, "the token is unknown or revoked"), request.id);
        caller.token = *std::move(known);
      }
      auto reply = dispatch(request, *found.route, found.parts, caller);
      if (reply) return *std::move(reply);
      return refusal(status_of(reply.error(), true), reply.error(), request.id);
    } catch (const std::bad_alloc&) {
      return refusal(503, make_error(ErrorKind::unavailable, "the service is short of memory"), request.id);
    } catch (const std::exception& error) {
      log_.warn("fault", {{"request_id", request.id}, {"what", error.what()}});
      return refusal(500, make_error(ErrorKind::internal, "a fault of the service; its log has more under this request's id"), request.id);
    }
  }

  void done(const HttpRequest& request, int status, double seconds) {
    const Found found = find_route(request.method, request.path);
    const std::string route = found.route != nullptr ? found.route->path : "none";
    service_.metrics().add("hone_http_requests_total", {{"route", route}, {"method", found.route != nullptr ? request.method : "none"}, {"code", std::to_string(status)}});
    service_.metrics().observe("hone_http_request_seconds", {{"route", route}}, seconds);
    const bool changes = request.method != "GET" && request.method != "HEAD";
    if (!changes && status < 400) return;
    std::string who = "local";
    if (const auto secret = secret_of(request)) {
      const auto token = service_.identify(*secret);
      who = token ? token->id : "unknown";
    }
    json row = {{"request_id", request.id}, {"peer", request.peer}, {"token", who}, {"method", request.method.substr(0, 16)},
                {"path", request.path.substr(0, 256)}, {"status", status}};
    if (changes || status == 401 || status == 403) log_.audit(row);
  }

 private:
  // Without tokens whoever is on this machine may ask, but not a web page that somebody here looks at: a browser names
  // the page's origin, and a page that has made its own name mean 127.0.0.1 comes with that name as the host.
  std::optional<Error> foreign(const HttpRequest& request, const Route& route) const {
    if (route.open || service_.wants_tokens()) return std::nullopt;
    for (const char* name : {"host", "origin"})
      if (const auto given = request.header(name); given && !names_loopback(*given))
        return make_error(ErrorKind::unauthorized, "{}: {} is not this machine's own address", name,
                          json(given->substr(0, 80)).dump(-1, ' ', true, json::error_handler_t::replace))
            .with_hint("a service that others use has tokens: `hone token create NAME`");
    return std::nullopt;
  }

  Result<Caller> admit(const HttpRequest& request, const Route& route) {
    if (route.open) return Caller{std::nullopt, request.peer, request.id};
    return service_.admit(secret_of(request), request.peer, request.id);
  }

  Result<HttpReply> dispatch(const HttpRequest& request, const Route& route, const std::map<std::string, std::string>& parts, const Caller& caller) {
    const std::string_view path = route.path;
    const bool post = std::string_view(route.method) == "POST";
    Query query(request);
    if (path == "/health") {
      HONE_CHECK(query.nothing_else());
      const Health health = service_.health();
      HttpResponse out = as_json(health.ok ? 200 : 503, health.body);
      if (!health.ok) out.headers.emplace_back("Retry-After", "2");
      return out;
    }
    if (path == "/openapi.json") {
      HONE_CHECK(query.nothing_else());
      return as_json(200, openapi(service_.version(), service_.wants_tokens(), service_.supports("exec").has_value()));
    }
    if (!post && !caller.may(Scope::read)) return fail(ErrorKind::unauthorized, "this token has not the scope read");
    if (path == "/metrics") {
      HONE_CHECK(query.nothing_else());
      return HttpResponse{200, "text/plain; version=0.0.4; charset=utf-8", service_.metrics_text(), {}};
    }
    if (path == "/v1/tasks") {
      HONE_CHECK(query.nothing_else());
      json tasks = json::array();
      for (const std::string& name : task_names())
        if (const auto task = load_task(name)) tasks.push_back(task_json(*task));
      return as_json(200, {{"schema", "hone.tasks/1"}, {"tasks", std::move(tasks)}});
    }
    if (path == "/v1/tasks/{name}") {
      HONE_CHECK(query.nothing_else());
      const std::vector<std::string> known = task_names();
      if (std::find(known.begin(), known.end(), parts.at("name")) == known.end())   // never a path
        return fail(ErrorKind::not_found, "there is no task {}", json(parts.at("name").substr(0, 128)).dump(-1, ' ', true, json::error_handler_t::replace));
      HONE_TRY(const Task task, load_task(parts.at("name")));
      return as_json(200, task_json(task));
    }
    if (path == "/v1/jobs" && post) return submit(request, query, caller);
    if (path == "/v1/jobs") {
      HONE_TRY(const auto limit, query.number<std::int64_t>("limit", 1, 500));
      HONE_TRY(const auto before, query.number<std::int64_t>("before", 1, std::int64_t{1} << 53));
      HONE_CHECK(query.nothing_else());
      HONE_TRY(const json jobs, service_.jobs(caller, static_cast<std::size_t>(limit.value_or(50)), before));
      return as_json(200, jobs);
    }
    if (path == "/v1/blobs/{sha256}") {
      HONE_CHECK(query.nothing_else());
      if (!is_sha256(parts.at("sha256"))) return fail(ErrorKind::not_found, "that is no SHA-256 in lower-case hex");
      HONE_TRY(std::string bytes, service_.blob(caller, parts.at("sha256")));
      return HttpResponse{200, "application/octet-stream", std::move(bytes), {}};
    }
    const std::string id = parts.at("id");
    if (path == "/v1/jobs/{id}/cancel") {
      HONE_CHECK(query.nothing_else());
      if (!request.body.empty()) return fail(ErrorKind::usage, "cancelling takes no body");
      HONE_TRY(const json job, service_.cancel(caller, id));
      return as_json(200, job);
    }
    if (path == "/v1/jobs/{id}/artifacts/{name}") {
      HONE_CHECK(query.nothing_else());
      HONE_TRY(std::string bytes, service_.artifact(caller, id, parts.at("name")));
      return HttpResponse{200, "application/json", std::move(bytes), {}};
    }
    HONE_TRY(const auto after, query.number<std::int64_t>("after", 0, std::int64_t{1} << 53));
    if (path == "/v1/jobs/{id}/events") {
      HONE_CHECK(query.nothing_else());
      HONE_CHECK(service_.events(caller, id, 0));
      return events(caller, id, after.value_or(0));
    }
    HONE_TRY(const auto wait, query.number<double>("wait", 0, kLongestWait_s));
    HONE_CHECK(query.nothing_else());
    HONE_TRY(const json now, service_.job(caller, id, after));
    if (wait.value_or(0) <= 0) return as_json(200, now);
    return HttpWait{id, *wait, [this, caller, id, after](bool last) -> std::optional<HttpResponse> {
                      const auto job = service_.job(caller, id, after);
                      if (!job) return refusal(status_of(job.error(), true), job.error(), caller.request_id);
                      const std::string state = (*job)["state"].get<std::string>();
                      const bool news = state == "done" || state == "cancelled" || (after && !(*job)["events"].empty());
                      if (!news && !last) return std::nullopt;
                      return as_json(200, *job);
                    }};
  }

  Result<HttpReply> submit(const HttpRequest& request, const Query& query, const Caller& caller) {
    HONE_CHECK(query.nothing_else());
    const std::string type = request.header("content-type").value_or("");
    if (type.substr(0, type.find(';')) != "application/json")
      return refusal(415, make_error(ErrorKind::usage, "Content-Type must be application/json"), request.id);
    std::string key;
    if (const auto given = request.header("idempotency-key")) {
      key = *given;
      if (key.empty() || key.size() > 128 || !std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; }))
        return fail(ErrorKind::usage, "Idempotency-Key: 1 to 128 of the characters A-Z a-z 0-9 . _ -");
    }
    HONE_TRY(const json body, parse_json(request.body));
    // Never, not later: nobody should wait for it.
    if (body.is_object() && body.contains("kind") && body["kind"].is_string())
      if (const auto supported = service_.supports(body["kind"].get<std::string>()); !supported) return refusal(501, supported.error(), request.id);
    HONE_TRY(Service::Submitted submitted, service_.submit(caller, body, key));
    HttpResponse out = as_json(submitted.repeated ? 200 : 202, submitted.job);
    out.headers.emplace_back("Location", "/v1/jobs/" + submitted.job["id"].get<std::string>());
    return out;
  }

  HttpReply events(const Caller& caller, const std::string& id, std::int64_t after) {
    return HttpEvents{id, [this, caller, id, seen = after]() mutable {
                        HttpEvents::Part out;
                        const auto ended = service_.ended(id);   // before the events: none is missed
                        const auto events = service_.events(caller, id, seen);
                        if (!events || !ended) {
                          out.end = true;
                          return out;
                        }
                        for (const Event& each : *events) {
                          out.text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", each.n, each.name,
                                                  json{{"time", each.time}, {"data", each.data}}.dump(-1, ' ', true, json::error_handler_t::replace));
                          seen = each.n;
                        }
                        out.end = *ended;
                        return out;
                      }};
  }

  Service& service_;
  Log& log_;
};

}  // namespace

HttpApi make_api(Service& service, Log& log) {
  auto api = std::make_shared<Api>(service, log);
  HttpApi out;
  out.head = [api](const HttpRequest& head) { return api->head(head); };
  out.answer = [api](const HttpRequest& request) { return api->answer(request); };
  out.refuse = [](int status, const std::string& message, const HttpRequest& request) {
    return refusal(status, make_error(status == 503 ? ErrorKind::unavailable : ErrorKind::usage, "{}", message), request.id);
  };
  out.done = [api](const HttpRequest& request, int status, double seconds) { api->done(request, status, seconds); };
  out.connections = [&service](int open) { service.metrics().set("hone_http_connections", {}, open); };
  return out;
}

}  // namespace hone::server
