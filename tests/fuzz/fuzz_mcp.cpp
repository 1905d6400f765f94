// A conversation with an agent program: any lines, whole or in pieces, are answered by messages or by nothing, each on one line;
// and what a hook is given decides without a crash.
#include <cstdlib>

#include "mcp/lines.h"
#include "mcp/server.h"
#include "run/guard.h"

namespace {

using namespace hone;

mcp::ServerOptions options() {
  mcp::ServerOptions out;
  out.version = "1";
  const nlohmann::json any = {{"type", "object"}};
  out.tools.push_back({"echo", "Echo", "gives its arguments", any, any, false, false, [](const mcp::Call& call) -> Result<mcp::Answer> {
                         call.progress(call.arguments.dump());
                         return mcp::Answer{call.arguments.dump(), call.arguments};
                       }});
  out.resources.push_back({"hone://x", "x", "X", "", "text/plain", [] { return Result<std::string>("words"); }});
  out.send = [](const nlohmann::json& message) {
    const std::string line = mcp::to_line(message);
    if (line.find('\n') != std::string::npos || !nlohmann::json::accept(line)) std::abort();
    if (message.value("jsonrpc", "") != "2.0" || message.contains("method") == (message.contains("result") || message.contains("error"))) std::abort();
    if (message.contains("result") && message["result"].is_object() && message["result"].contains("structuredContent") && message["result"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size() > 40000) std::abort();
  };
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  {
    mcp::Server server(options());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      server.receive(text.substr(at, end - at));
      at = end + 1;
    }
  }
  const auto denied = guard_hook("/nowhere/run", text);
  if (!denied && (denied.error().kind != ErrorKind::forbidden || denied.error().message.empty())) std::abort();
  // The same bytes as a command: what writes to the record in plain words stays refused whatever goes before it.
  nlohmann::json input = {{"tool_name", "Bash"}, {"cwd", "/nowhere/run/worktree"}, {"tool_input", {{"command", std::string(text)}}}};
  (void)guard_tool("/nowhere/run", input);
  return 0;
}
