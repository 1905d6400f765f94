#include "mcp/message.h"

#include "base/json.h"

namespace hone::mcp {
namespace {

using nlohmann::json;

Message faulty(json id, int code, std::string text) {
  Message message;
  message.id = std::move(id);
  message.fault = {code, std::move(text)};
  return message;
}

}  // namespace

Message parse_message(std::string_view line) {
  auto parsed = parse_json(line);
  if (!parsed) return faulty({}, kParseError, parsed.error().message);
  json& in = *parsed;
  if (in.is_array()) return faulty({}, kInvalidRequest, "a batch: send one message a line");
  if (!in.is_object()) return faulty({}, kInvalidRequest, "a message is an object");
  const auto id = in.find("id");
  const bool has_id = id != in.end();
  const bool good_id = has_id && (id->is_string() || id->is_number_integer());
  const json known = good_id ? *id : json();
  const auto version = in.find("jsonrpc");
  if (version == in.end() || *version != "2.0") return faulty(known, kInvalidRequest, "jsonrpc must be \"2.0\"");
  const auto method = in.find("method");
  if (method == in.end()) {
    // An answer to something that was never asked; an error may come without an id.
    if (in.contains("result") || in.contains("error")) {
      Message answer;
      answer.kind = Message::Kind::response;
      answer.id = known;
      return answer;
    }
    return faulty(known, kInvalidRequest, "the message has no method");
  }
  if (!method->is_string()) return faulty(known, kInvalidRequest, "method must be text");
  if (has_id && !good_id) return faulty({}, kInvalidRequest, "id must be text or a whole number");
  Message message;
  message.id = known;
  message.method = method->get<std::string>();
  if (const auto params = in.find("params"); params != in.end() && !params->is_null()) {
    if (!params->is_object()) return faulty(known, has_id ? kInvalidParams : kInvalidRequest, "params must be an object");
    message.params = std::move(*params);
  }
  message.kind = has_id ? Message::Kind::request : Message::Kind::notification;
  return message;
}

json result_message(const json& id, json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }

json fault_message(const json& id, const Fault& fault) {
  json error = {{"code", fault.code}, {"message", fault.message}};
  if (!fault.data.is_null()) error["data"] = fault.data;
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}};
}

json notification(const std::string& method, json params) { return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}}; }

std::string to_line(const json& message) { return message.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace hone::mcp
