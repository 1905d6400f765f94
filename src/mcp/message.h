// JSON-RPC 2.0 as MCP uses it over stdio: one message a line. Lines come from a stranger.
#ifndef HONE_MCP_MESSAGE_H
#define HONE_MCP_MESSAGE_H

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hone::mcp {

// A longer line is refused unread.
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

// Codes of JSON-RPC, and two of MCP.
constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602, kInternalError = -32603;
constexpr int kBusy = -32000, kResourceNotFound = -32002, kUnsupportedVersion = -32022;

struct Fault {
  int code = kInternalError;
  std::string message;
  nlohmann::json data = {};        // null: none
};

struct Message {
  enum class Kind { request, notification, response, fault };
  Kind kind = Kind::fault;
  nlohmann::json id;               // text or whole number; null where it could not be told
  std::string method;
  nlohmann::json params = nlohmann::json::object();
  Fault fault;                     // of kind fault: what the sender is told
};

Message parse_message(std::string_view line);

nlohmann::json result_message(const nlohmann::json& id, nlohmann::json result);
nlohmann::json fault_message(const nlohmann::json& id, const Fault& fault);
nlohmann::json notification(const std::string& method, nlohmann::json params);
// One line without its end: no byte in it is a line end, and it is valid UTF-8 whatever the strings hold.
std::string to_line(const nlohmann::json& message);

}  // namespace hone::mcp

#endif
