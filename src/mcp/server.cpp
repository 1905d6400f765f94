#include "mcp/server.h"

#include <algorithm>
#include <condition_variable>
#include <exception>

#include "base/clock.h"
#include "base/text.h"
#include "base/yaml.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";
constexpr const char* kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";
constexpr double kHeartbeat_s = 15;      // clients end a call that is silent for long
constexpr std::size_t kListeners = 16;

json server_info(const std::string& version) { return {{"name", "hone"}, {"title", "Hone"}, {"version", version}}; }

json capabilities() { return {{"tools", json::object()}, {"resources", json::object()}}; }

const json* member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Sends a call's progress with ever larger numbers, and the last line again while nothing new comes.
class Ticker {
 public:
  Ticker(json token, std::function<void(const json&)> send) : token_(std::move(token)), send_(std::move(send)) {
    if (!token_.is_null()) heart_ = std::thread([this] { beat(); });
  }
  ~Ticker() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    if (heart_.joinable()) heart_.join();
  }
  void say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    last_ = line;
    tell();
  }

 private:
  void tell() {
    if (token_.is_null() || done_) return;
    send_(notification("notifications/progress", {{"progressToken", token_}, {"progress", ++count_}, {"message", shortened(last_, 500)}}));
  }
  void beat() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, as_duration(kHeartbeat_s), [&] { return done_; })) tell();
  }

  const json token_;
  const std::function<void(const json&)> send_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string last_ = "working";
  std::int64_t count_ = 0;
  bool done_ = false;
  std::thread heart_;
};

Result<Answer> call_safely(const Tool& tool, const Call& call) {
  try {
    return tool.call(call);
  } catch (const std::exception& error) {
    return fail(ErrorKind::internal, "{}: {}", tool.name, error.what());
  }
}

}  // namespace

const std::vector<std::string>& handshake_versions() {
  static const std::vector<std::string> all{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
  return all;
}

const std::vector<std::string>& stateless_versions() {
  static const std::vector<std::string> all{"2026-07-28"};
  return all;
}

const std::map<std::string, Server::Handler, std::less<>>& Server::handlers() {
  static const std::map<std::string, Handler, std::less<>> all{
      {"initialize", &Server::initialize},
      {"ping", &Server::ping},
      {"server/discover", &Server::discover},
      {"tools/list", &Server::list_tools},
      {"tools/call", &Server::call_tool},
      {"resources/list", &Server::list_resources},
      {"resources/templates/list", &Server::list_templates},
      {"resources/read", &Server::read_resource},
      {"subscriptions/listen", &Server::listen},
  };
  return all;
}

void Server::receive(std::string_view line) {
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  Message message = parse_message(line);
  switch (message.kind) {
    case Message::Kind::request: return request(std::move(message));
    case Message::Kind::notification: return notified(message);
    case Message::Kind::response: return log("an answer to nothing that was asked was dropped");
    case Message::Kind::fault: return refuse(message.id, message.fault);
  }
}

void Server::too_long() {
  refuse({}, {kParseError, fmt::format("a line is longer than {}", format_bytes(kLongestLine))});
}

void Server::request(Message message) {
  log(fmt::format("request {} {}", message.id.dump(-1, ' ', true, json::error_handler_t::replace), message.method));
  const auto handler = handlers().find(message.method);
  if (handler == handlers().end()) {
    std::vector<std::string> known;
    for (const auto& [name, function] : handlers()) known.push_back(name);
    const std::string near = nearest(message.method, known);
    return refuse(message.id, {kMethodNotFound, fmt::format("unknown method {}{}", message.method, near.empty() ? "" : "; did you mean " + near + "?")});
  }
  Request request{message.id, std::move(message.params)};
  const json* meta = member(request.params, "_meta");
  if (meta != nullptr && !meta->is_object()) return refuse(request.id, {kInvalidParams, "_meta must be an object"});
  const json* version = meta != nullptr ? member(*meta, kVersionKey) : nullptr;
  request.stateless = version != nullptr;
  if (request.stateless) {
    if (!version->is_string()) return refuse(request.id, {kInvalidParams, fmt::format("_meta: {} must be text", kVersionKey)});
    if (const json* theirs = member(*meta, kCapabilitiesKey); theirs == nullptr || !theirs->is_object())
      return refuse(request.id, {kInvalidParams, fmt::format("_meta: {} is missing", kCapabilitiesKey)});
    const auto& known = stateless_versions();
    if (std::find(known.begin(), known.end(), version->get<std::string>()) == known.end())
      return refuse(request.id, {kUnsupportedVersion, "unsupported protocol version", {{"supported", known}, {"requested", *version}}});
  }
  (this->*handler->second)(request);
}

void Server::notified(const Message& message) {
  log("notification " + message.method);
  if (message.method != "notifications/cancelled") return;
  const json* id = member(message.params, "requestId");
  if (id == nullptr) return;
  if (calls_.cancel(id->dump())) return;
  const std::lock_guard lock(listening_);
  listeners_.erase(id->dump());
}

void Server::answer(const Request& request, json result, bool cacheable) {
  if (request.stateless) {
    result["resultType"] = "complete";
    result["_meta"][kServerKey] = server_info(options_.version);
    if (cacheable) {
      result["ttlMs"] = 0;
      result["cacheScope"] = "private";
    }
  }
  options_.send(result_message(request.id, std::move(result)));
}

void Server::refuse(const json& id, const Fault& fault) {
  log(fmt::format("refused: {} {}", fault.code, fault.message));
  options_.send(fault_message(id, {fault.code, shortened(fault.message, 500), fault.data}));
}

void Server::initialize(const Request& request) {
  const json* wanted = member(request.params, "protocolVersion");
  if (wanted == nullptr || !wanted->is_string()) return refuse(request.id, {kInvalidParams, "protocolVersion is missing"});
  const auto& known = handshake_versions();
  const auto found = std::find(known.begin(), known.end(), wanted->get<std::string>());
  answer(request, {{"protocolVersion", found != known.end() ? *found : known.back()},
                   {"capabilities", capabilities()},
                   {"serverInfo", server_info(options_.version)},
                   {"instructions", options_.instructions}});
}

void Server::discover(const Request& request) {
  if (!request.stateless) return refuse(request.id, {kInvalidParams, fmt::format("_meta: {} is missing", kVersionKey)});
  answer(request, {{"supportedVersions", stateless_versions()}, {"capabilities", capabilities()}, {"instructions", options_.instructions}}, true);
}

void Server::ping(const Request& request) { answer(request, json::object()); }

void Server::list_tools(const Request& request) {
  json tools = json::array();
  for (const Tool& tool : options_.tools) tools.push_back(listing_of(tool));
  answer(request, {{"tools", std::move(tools)}}, true);
}

void Server::start(const Request& request, bool measures, Calls::Work work) {
  switch (calls_.start(request.id.dump(), measures, std::move(work))) {
    case Calls::Started::yes: return;
    case Calls::Started::key_in_use: return refuse(request.id, {kInvalidRequest, "a request with this id is still being worked on"});
    case Calls::Started::too_many: return refuse(request.id, {kBusy, "too many calls wait: let some end first"});
  }
}

void Server::call_tool(const Request& request) {
  const json* name = member(request.params, "name");
  if (name == nullptr || !name->is_string()) return refuse(request.id, {kInvalidParams, "name is missing"});
  const auto tool = std::find_if(options_.tools.begin(), options_.tools.end(), [&](const Tool& each) { return each.name == *name; });
  if (tool == options_.tools.end()) {
    std::vector<std::string> known;
    for (const Tool& each : options_.tools) known.push_back(each.name);
    const std::string near = nearest(name->get<std::string>(), known);
    return refuse(request.id, {kInvalidParams, fmt::format("unknown tool {}{}", name->get<std::string>(), near.empty() ? "" : "; did you mean " + near + "?")});
  }
  json arguments = json::object();
  if (const json* given = member(request.params, "arguments"); given != nullptr && !given->is_null()) arguments = *given;
  if (!arguments.is_object()) return refuse(request.id, {kInvalidParams, "arguments must be an object"});
  // The model wrote these: it is told as of a tool that failed, so that it can do better.
  if (const auto good = check_schema(arguments, tool->input.dump(), "the arguments of " + tool->name); !good) {
    Error error = good.error();
    error.kind = ErrorKind::usage;
    return answer(request, result_of(error));
  }
  json token;
  if (const json* meta = member(request.params, "_meta"); meta != nullptr)
    if (const json* given = member(*meta, "progressToken"); given != nullptr && (given->is_string() || given->is_number_integer())) token = *given;
  start(request, tool->measures, [this, request, &tool = *tool, arguments = std::move(arguments), token](const std::atomic<bool>& cancel) -> Calls::Reply {
    Result<Answer> outcome = fail(ErrorKind::cancelled, "cancelled before it began");
    if (!cancel.load()) {
      Ticker ticker(token, options_.send);
      const std::function<void(const std::string&)> progress = [&](const std::string& line) { ticker.say(line); };
      outcome = call_safely(tool, {arguments, progress, cancel});
    }
    // Whoever cancelled waits for nothing.
    if (cancel.load()) {
      log(fmt::format("{} was cancelled", tool.name));
      return {};
    }
    return [this, request, result = outcome ? result_of(*outcome) : result_of(outcome.error())] { answer(request, result); };
  });
}

void Server::list_resources(const Request& request) {
  json all = json::array();
  for (const Resource& each : options_.resources)
    all.push_back({{"uri", each.uri}, {"name", each.name}, {"title", each.title}, {"description", each.description}, {"mimeType", each.mime}});
  answer(request, {{"resources", std::move(all)}}, true);
}

void Server::list_templates(const Request& request) { answer(request, {{"resourceTemplates", json::array()}}, true); }

void Server::read_resource(const Request& request) {
  const json* uri = member(request.params, "uri");
  if (uri == nullptr || !uri->is_string()) return refuse(request.id, {kInvalidParams, "uri is missing"});
  const auto found = std::find_if(options_.resources.begin(), options_.resources.end(), [&](const Resource& each) { return each.uri == *uri; });
  if (found == options_.resources.end())
    return refuse(request.id, {request.stateless ? kInvalidParams : kResourceNotFound, "no such resource", {{"uri", *uri}}});
  start(request, false, [this, request, &resource = *found](const std::atomic<bool>& cancel) -> Calls::Reply {
    const auto text = resource.read();
    if (cancel.load()) return {};
    return [this, request, &resource, text] {
      if (!text) return refuse(request.id, {kInternalError, to_text(text.error())});
      answer(request, {{"contents", json::array({{{"uri", resource.uri}, {"mimeType", resource.mime}, {"text", *text}}})}}, true);
    };
  });
}

// Tools and resources stay as they are while the server lives: the stream is kept open and stays silent.
void Server::listen(const Request& request) {
  if (!request.stateless) return refuse(request.id, {kMethodNotFound, "unknown method subscriptions/listen"});
  {
    const std::lock_guard lock(listening_);
    if (listeners_.size() >= kListeners) return refuse(request.id, {kBusy, "too many subscriptions"});
    if (!listeners_.emplace(request.id.dump(), request).second)
      return refuse(request.id, {kInvalidRequest, "a request with this id is still being worked on"});
  }
  options_.send(notification("notifications/subscriptions/acknowledged", {{"_meta", {{kSubscriptionKey, request.id}}}, {"notifications", json::object()}}));
}

void Server::stop() {
  if (std::exchange(stopped_, true)) return;
  for (const Tool& tool : options_.tools)
    if (tool.stop) tool.stop();
  calls_.stop();
  const std::lock_guard lock(listening_);
  for (const auto& [key, request] : listeners_) answer(request, {{"_meta", {{kSubscriptionKey, request.id}}}});
}

}  // namespace hone::mcp
