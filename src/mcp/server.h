// An MCP server without its transport: lines in, messages out. Speaks the handshake of 2024-11-05 to 2025-11-25
// (`initialize`) and the stateless requests of 2026-07-28 (`server/discover`, version in every `_meta`), both at any time.
#ifndef HONE_MCP_SERVER_H
#define HONE_MCP_SERVER_H

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/calls.h"
#include "mcp/message.h"
#include "mcp/resource.h"
#include "mcp/tool.h"

namespace hone::mcp {

// Oldest first; the last of each kind is the newest.
const std::vector<std::string>& handshake_versions();
const std::vector<std::string>& stateless_versions();

struct ServerOptions {
  std::string version;                                  // of hone
  std::string instructions;                             // what a model should know of the tools
  std::vector<Tool> tools;
  std::vector<Resource> resources;
  std::function<void(const nlohmann::json&)> send;      // any thread; one message a call
  std::function<void(const std::string&)> log;          // any thread; one line for people
};

class Server {
 public:
  explicit Server(ServerOptions options) : options_(std::move(options)) {}
  ~Server() { stop(); }

  // One thread. Tools and resources go on in others.
  void receive(std::string_view line);
  void too_long();                                      // a line that was dropped
  // Cancels what runs and waits for it; what was cancelled is not answered.
  void stop();

 private:
  struct Request {
    nlohmann::json id, params;
    bool stateless = false;                             // of 2026-07-28
  };
  using Handler = void (Server::*)(const Request&);
  static const std::map<std::string, Handler, std::less<>>& handlers();

  void request(Message message);
  void notified(const Message& message);
  void initialize(const Request& request);
  void discover(const Request& request);
  void ping(const Request& request);
  void list_tools(const Request& request);
  void call_tool(const Request& request);
  void list_resources(const Request& request);
  void list_templates(const Request& request);
  void read_resource(const Request& request);
  void listen(const Request& request);

  // `cacheable`: of a stateless request it also says for how long the result holds.
  void answer(const Request& request, nlohmann::json result, bool cacheable = false);
  void refuse(const nlohmann::json& id, const Fault& fault);
  void start(const Request& request, bool measures, Calls::Work work);
  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  ServerOptions options_;
  std::mutex listening_;
  std::map<std::string, Request> listeners_;            // by the id's text
  bool stopped_ = false;
  Calls calls_;                                         // last: its threads use the rest
};

}  // namespace hone::mcp

#endif
