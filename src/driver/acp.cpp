// Any agent that speaks the Agent Client Protocol, version 1: JSON-RPC, one message a line, we are the client.
#include "base/json.h"
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kInitialize = 1, kNew = 2, kPrompt = 3;

class AcpDialect : public Dialect {
 public:
  AcpDialect(const Turn& turn, std::vector<McpServer> servers) : Dialect(turn), servers_(std::move(servers)) {
    // Told that there are neither files nor terminals of ours: what it does, it does itself, in its own view.
    ask(kInitialize, "initialize", {{"protocolVersion", 1},
                                    {"clientCapabilities", {{"fs", {{"readTextFile", false}, {"writeTextFile", false}}}, {"terminal", false}}},
                                    {"clientInfo", {{"name", "hone"}, {"version", "1"}}}});
  }

  std::string to_send() override { return std::exchange(outgoing_, {}); }
  bool input_done() override { return false; }
  bool over() override { return over_; }
  bool ask_to_stop() override {
    if (heard_.session.empty() || over_) return false;
    send({{"jsonrpc", "2.0"}, {"method", "session/cancel"}, {"params", {{"sessionId", heard_.session}}}});
    return true;
  }

  bool line(std::string_view text) override {
    const auto message = parse_json(text);
    if (!message || !message->is_object()) {
      if (++noise_ <= 3) tell(EventKind::note, "not a message: " + one_line(text));
      return false;
    }
    const std::string method = text_at(*message, {"method"});
    if (method.empty()) return answer(*message);
    if (message->contains("id")) return request(method, *message);
    if (method == "session/update") return update(at(*message, {"params", "update"}));
    if (method == "session/retrying") {
      tell(EventKind::retry, text_at(*message, {"params", "category"}) + " " + one_line(text_at(*message, {"params", "detail"})));
      return false;
    }
    return true;
  }

 private:
  void send(const json& message) { outgoing_ += message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }
  void ask(int id, const char* method, json params) { send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}); }

  void finish(bool success, const std::string& reason) {
    flush();
    heard_.success = success;
    heard_.reason = reason;
    over_ = true;
  }

  // The answer to what was asked last; any other is somebody's mistake and changes nothing.
  bool answer(const json& message) {
    if (over_ || count_at(message, {"id"}) != asked_) {
      tell(EventKind::note, "an answer to nothing that was asked");
      return false;
    }
    if (message.contains("error")) {
      const std::string reason = text_at(message, {"error", "data", "reason"}), detail = text_at(message, {"error", "data", "details"});
      finish(false, text_at(message, {"error", "message"}) + (reason.empty() ? "" : ": " + reason) + (detail.empty() ? "" : ": " + detail));
      return true;
    }
    const json& result = at(message, {"result"});
    if (asked_ == kInitialize) {
      json servers = json::array();
      for (const McpServer& each : servers_) {
        json env = json::array();
        for (const auto& [name, value] : each.env) env.push_back({{"name", name}, {"value", value}});
        servers.push_back({{"name", each.name}, {"command", each.command}, {"args", each.args}, {"env", std::move(env)}});
      }
      asked_ = kNew;
      ask(kNew, "session/new", {{"cwd", turn_.cwd.string()}, {"mcpServers", std::move(servers)}});
    } else if (asked_ == kNew) {
      heard_.session = text_at(result, {"sessionId"});
      if (heard_.session.empty()) {
        finish(false, "it opened no session");
        return true;
      }
      asked_ = kPrompt;
      ask(kPrompt, "session/prompt", {{"sessionId", heard_.session}, {"prompt", json::array({{{"type", "text"}, {"text", turn_.prompt}}})}});
    } else {
      prompted(result);
    }
    return true;
  }

  void prompted(const json& result) {
    flush();
    heard_.usage.input_tokens = count_at(result, {"usage", "inputTokens"});
    heard_.usage.output_tokens = count_at(result, {"usage", "outputTokens"});
    heard_.usage.cached_tokens = count_at(result, {"usage", "cachedReadTokens"});
    if (heard_.usage.input_tokens || heard_.usage.output_tokens) tell_usage();
    const std::string why = text_at(result, {"stopReason"});
    if (why != "end_turn") finish(false, "it stopped: " + (why.empty() ? "for no reason" : why) + (heard_.last_text.empty() ? "" : ": " + heard_.last_text));
    else if (!did_anything_) finish(false, "it ended the turn without a word or a tool call");   // some do so when the service refuses
    else finish(true, "");
  }

  bool request(const std::string& method, const json& message) {
    json reply{{"jsonrpc", "2.0"}, {"id", message["id"]}};
    if (method == "session/request_permission") reply["result"] = {{"outcome", permit(at(message, {"params"}))}};
    else reply["error"] = {{"code", -32601}, {"message", "this client has no " + method}};
    send(reply);
    return true;
  }

  // Once is preferred to always, by kind and not by id: ids are every program's own.
  json permit(const json& params) {
    const std::string title = text_at(params, {"toolCall", "title"});
    for (const std::string_view kind : {"allow_once", "allow_always"})
      for (const json& option : at(params, {"options"}))
        if (text_at(option, {"kind"}) == kind && at(option, {"optionId"}).is_string()) {
          tell(EventKind::permission, std::string(kind) + ": " + title);
          return {{"outcome", "selected"}, {"optionId", option["optionId"]}};
        }
    tell(EventKind::permission, "nothing to allow among the options: " + title);
    return {{"outcome", "cancelled"}};
  }

  bool update(const json& update) {
    const std::string kind = text_at(update, {"sessionUpdate"});
    if (kind == "agent_message_chunk" || kind == "agent_thought_chunk") {
      const std::string text = text_at(update, {"content", "text"});
      if (text.empty()) return true;
      if (thinking_ != (kind == "agent_thought_chunk")) flush();
      thinking_ = kind == "agent_thought_chunk";
      if (said_.size() < 4 * kEventText) said_ += text;
      did_anything_ = did_anything_ || !thinking_;
    } else if (kind == "tool_call") {
      flush();
      did_anything_ = true;
      names_[text_at(update, {"toolCallId"})] = text_at(update, {"title"});
      const json& input = at(update, {"rawInput"});
      tell(EventKind::tool_call, input.is_null() ? text_at(update, {"title"}) : input.dump(-1, ' ', false, json::error_handler_t::replace), text_at(update, {"title"}));
      result_of(update);
    } else if (kind == "tool_call_update") {
      result_of(update);
    }
    return true;
  }

  void result_of(const json& update) {
    const std::string status = text_at(update, {"status"});
    if (status != "completed" && status != "failed") return;
    flush();
    std::string text;
    const json& content = at(update, {"content"});
    if (content.is_array())
      for (const json& each : content) text += text_at(each, {"content", "text"});
    if (text.empty()) text = text_at(update, {"rawOutput"});
    const auto name = names_.find(text_at(update, {"toolCallId"}));
    tell(EventKind::tool_result, text.empty() ? status : text, name == names_.end() ? "" : name->second);
  }

  void flush() {
    if (said_.empty()) return;
    if (!thinking_) heard_.last_text = said_;
    tell(thinking_ ? EventKind::thought : EventKind::text, said_);
    said_.clear();
  }

  std::vector<McpServer> servers_;
  std::string outgoing_, said_;
  int asked_ = kInitialize, noise_ = 0;
  bool over_ = false, thinking_ = false, did_anything_ = false;
  std::map<std::string, std::string> names_;
};

class AcpDriver : public Driver {
 public:
  explicit AcpDriver(const AgentSpec& spec) : argv_(words_of(spec.program)) {}
  Result<TurnResult> run(const Turn& turn) override {
    HONE_TRY(auto servers, mcp_servers(turn.config));
    AcpDialect dialect(turn, std::move(servers));
    return run_dialect({argv_}, turn, dialect);
  }

 private:
  std::vector<std::string> argv_;
};

}  // namespace

std::unique_ptr<Driver> make_acp_driver(const AgentSpec& spec) { return std::make_unique<AcpDriver>(spec); }

}  // namespace hone
