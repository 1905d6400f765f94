// Any agent that speaks the Agent Client Protocol, version 1: JSON-RPC, one message a line, we are the client.
//
// Files are read and written for it below the turn's folder. A permission is given unless what it names shows a change
// outside of that, or a hidden path; what a shell command does no request can tell, which is what confinement is for.
#include <algorithm>

#include "base/json.h"
#include "driver/files.h"
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kInitialize = 1, kNew = 2, kPrompt = 3;
constexpr int kInvalid = -32602, kUnknown = -32601, kNotFound = -32002;   // of JSON-RPC and of the protocol

class AcpDialect : public Dialect {
 public:
  AcpDialect(const Turn& turn, std::vector<McpServer> servers) : Dialect(turn), servers_(std::move(servers)), files_(turn.cwd, turn.hidden) {
    for (const fs::path& each : turn.writable) writable_.emplace_back(each, turn.hidden);
    ask(kInitialize, "initialize", {{"protocolVersion", 1},
                                    {"clientCapabilities", {{"fs", {{"readTextFile", true}, {"writeTextFile", true}}}, {"terminal", false}}},
                                    {"clientInfo", {{"name", "hone"}, {"version", "1"}}}});
  }

  std::string to_send() override { return std::exchange(outgoing_, {}); }
  bool input_done() override { return false; }
  bool over() override { return over_; }
  bool exit_counts() const override { return false; }   // it ends because its input was closed
  bool ask_to_stop() override {
    stopping_ = true;
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
    if (method == "session/retrying" || method == "_session/retrying") {
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
      if (const auto version = count_at(result, {"protocolVersion"}); version && *version != 1) {
        finish(false, fmt::format("it speaks version {} of the protocol, not 1", *version));
        return true;
      }
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
    Usage& usage = heard_.usage;
    usage.input_tokens = count_at(result, {"usage", "inputTokens"});
    usage.output_tokens = count_at(result, {"usage", "outputTokens"});
    usage.cached_tokens = count_at(result, {"usage", "cachedReadTokens"});
    // No turn takes nothing: noughts are said by programs that don't know.
    if (usage.input_tokens.value_or(0) == 0 && usage.output_tokens.value_or(0) == 0) usage.input_tokens = usage.output_tokens = usage.cached_tokens = std::nullopt;
    else tell_usage();
    const std::string why = text_at(result, {"stopReason"});
    if (why != "end_turn") finish(false, "it stopped: " + (why.empty() ? "for no reason" : why) + (heard_.last_text.empty() ? "" : ": " + heard_.last_text));
    else if (!did_anything_) finish(false, "it ended the turn without a word or a tool call");   // some do so when the service refuses
    else finish(true, "");
  }

  bool request(const std::string& method, const json& message) {
    json reply{{"jsonrpc", "2.0"}, {"id", message["id"]}};
    const json& params = at(message, {"params"});
    if (method == "session/request_permission") reply["result"] = {{"outcome", permit(params)}};
    else if (method == "fs/read_text_file" || method == "fs/write_text_file") serve(method == "fs/read_text_file", params, reply);
    else reply["error"] = {{"code", kUnknown}, {"message", "this client has no " + method}};
    send(reply);
    return true;
  }

  void serve(bool reading, const json& params, json& reply) {
    const std::string path = text_at(params, {"path"});
    const auto refuse = [&](int code, const std::string& why) {
      reply["error"] = {{"code", code}, {"message", why}};
      if (code != kNotFound) tell(EventKind::permission, "refused: " + why);
    };
    if (path.empty() || (!reading && !at(params, {"content"}).is_string())) return refuse(kInvalid, "path and content are texts");
    if (outgoing_.size() > kUnread) return refuse(kInvalid, "too many answers wait to be read");
    if (reading) {
      auto text = files_.read(path, count_at(params, {"line"}).value_or(1), count_at(params, {"limit"}));
      if (!text) return refuse(text.error().kind == ErrorKind::io ? kNotFound : kInvalid, text.error().message);
      reply["result"] = {{"content", *std::move(text)}};
    } else {
      if (const auto done = files_.write(path, params["content"].get_ref<const std::string&>()); !done) return refuse(kInvalid, done.error().message);
      did_anything_ = true;
      reply["result"] = json::object();
    }
  }

  // What a call is known to be about, from whichever message told it; a request may name no more than its id.
  struct Call {
    std::string title, kind;
    std::vector<std::string> paths;
    bool changes = false;                      // it carries a difference to a file
  };
  void learn(Call& call, const json& told) {
    if (const std::string title = text_at(told, {"title"}); !title.empty() && call.title.empty()) call.title = title;   // later ones tell of progress
    if (const std::string kind = text_at(told, {"kind"}); !kind.empty()) call.kind = kind;
    const auto add = [&](const std::string& path) {
      if (!path.empty() && call.paths.size() < 64) call.paths.push_back(path);
    };
    const json& places = at(told, {"locations"});
    if (places.is_array())
      for (const json& each : places) add(text_at(each, {"path"}));
    const json& content = at(told, {"content"});
    if (content.is_array())
      for (const json& each : content)
        if (text_at(each, {"type"}) == "diff") {
          add(text_at(each, {"path"}));
          call.changes = true;
        }
    for (const char* name : {"path", "file_path", "filePath", "abs_path"}) add(text_at(told, {"rawInput", name}));
  }

  // Empty: nothing speaks against it.
  std::string objection(const Call& call) const {
    const bool changes = call.changes || call.kind == "edit" || call.kind == "delete" || call.kind == "move";
    for (const std::string& path : call.paths) {
      if (hidden(path)) return path + " is hidden from it";
      const bool inside = files_.holds(path) || std::any_of(writable_.begin(), writable_.end(), [&](const Enclosure& each) { return each.holds(path); });
      if (changes && !inside) return path + " lies outside the folder of the turn";
    }
    return "";
  }
  bool hidden(const std::string& path) const {
    return std::any_of(turn_.hidden.begin(), turn_.hidden.end(), [&](const fs::path& each) { return Enclosure(each, {}).holds(turn_.cwd / path); });
  }

  // Once is preferred to always, by kind and not by id: ids are every program's own.
  json permit(const json& params) {
    Call call = calls_[text_at(params, {"toolCall", "toolCallId"})];
    learn(call, at(params, {"toolCall"}));
    const json& options = at(params, {"options"});
    const auto choose = [&](std::initializer_list<std::string_view> kinds, const std::string& about) -> json {
      if (options.is_array())
        for (const std::string_view kind : kinds)
          for (const json& option : options)
            if (text_at(option, {"kind"}) == kind && at(option, {"optionId"}).is_string()) {
              tell(EventKind::permission, std::string(kind) + ": " + about);
              return {{"outcome", "selected"}, {"optionId", option["optionId"]}};
            }
      return nullptr;
    };
    if (!stopping_) {
      const std::string against = objection(call);
      json chosen = against.empty() ? choose({"allow_once", "allow_always"}, call.title) : choose({"reject_once", "reject_always"}, against);
      if (!chosen.is_null()) return chosen;
      tell(EventKind::permission, (against.empty() ? "nothing to allow among the options: " + call.title : "cancelled: " + against));
    }
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
      learn(calls_[text_at(update, {"toolCallId"})], update);
      const json& input = at(update, {"rawInput"});
      tell(EventKind::tool_call, input.is_null() ? text_at(update, {"title"}) : input.dump(-1, ' ', false, json::error_handler_t::replace), text_at(update, {"title"}));
      result_of(update);
    } else if (kind == "tool_call_update") {
      learn(calls_[text_at(update, {"toolCallId"})], update);
      result_of(update);
    } else if (kind == "usage_update" && text_at(update, {"cost", "currency"}) == "USD") {
      if (const json& cost = at(update, {"cost", "amount"}); cost.is_number() && cost.get<double>() > 0) heard_.usage.cost_usd = cost.get<double>();
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
    tell(EventKind::tool_result, text.empty() ? status : text, calls_[text_at(update, {"toolCallId"})].title);
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
  bool over_ = false, stopping_ = false, thinking_ = false, did_anything_ = false;
  std::map<std::string, Call> calls_;          // by id
  Enclosure files_;
  std::vector<Enclosure> writable_;
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

std::unique_ptr<Dialect> make_acp_dialect(const Turn& turn) { return std::make_unique<AcpDialect>(turn, std::vector<McpServer>{}); }
std::unique_ptr<Driver> make_acp_driver(const AgentSpec& spec) { return std::make_unique<AcpDriver>(spec); }

}  // namespace hone
