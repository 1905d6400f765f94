// Codex: `codex exec --json`, the prompt on standard input, one JSON event a line.
//
// It ends with no closing event on any signal, and can wait for the network for ever while it says so line by line.
#include "base/json.h"
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

using nlohmann::json;

// A TOML value: JSON's escapes of a string are TOML's.
std::string toml(const std::string& text) { return json(text).dump(-1, ' ', true, json::error_handler_t::replace); }

std::string tool_of(const json& item) {
  const std::string type = text_at(item, {"type"});
  if (type == "command_execution") return "shell";
  if (type == "mcp_tool_call") return text_at(item, {"server"}) + "." + text_at(item, {"tool"});
  if (type == "file_change" || type == "web_search") return type;
  return "";
}

// What an error message says: the service's own words where it holds a JSON body.
std::string message_of(const json& value) {
  const std::string text = text_at(value, {"message"});
  const std::size_t brace = text.find('{');
  if (brace == std::string::npos) return text;
  const auto body = parse_json(std::string_view(text).substr(brace));
  if (!body) return text;
  for (const auto& said : {text_at(*body, {"error", "message"}), text_at(*body, {"detail"}), text_at(*body, {"message"})})
    if (!said.empty()) return text.substr(0, brace) + said;
  return text;
}

class CodexDialect : public Dialect {
 public:
  using Dialect::Dialect;

  std::string to_send() override { return std::exchange(sent_, true) ? std::string() : turn_.prompt; }
  // Its closing event was the last word: a program that stays all the same is ended.
  bool over() override { return heard_.success.has_value(); }

  bool line(std::string_view text) override {
    const auto event = parse_json(text);
    if (!event) return false;
    const std::string type = text_at(*event, {"type"});
    if (type == "thread.started") heard_.session = text_at(*event, {"thread_id"});
    else if (type.starts_with("item.")) return item(type, at(*event, {"item"}));
    else if (type == "turn.completed") completed(at(*event, {"usage"}));
    else if (type == "turn.failed") {
      heard_.success = false;
      heard_.reason = message_of(at(*event, {"error"}));
    } else if (type == "error") {
      // Another try, or the last word before turn.failed.
      heard_.reason = message_of(*event);
      tell(EventKind::retry, heard_.reason);
      return false;
    }
    return true;
  }

 private:
  bool item(const std::string& type, const json& item) {
    const std::string kind = text_at(item, {"type"}), tool = tool_of(item);
    if (kind == "error") {
      tell(EventKind::note, text_at(item, {"message"}));   // such as a model that it has no figures of: no failure
    } else if (kind == "agent_message" && type == "item.completed") {
      heard_.last_text = text_at(item, {"text"});
      tell(EventKind::text, heard_.last_text);
    } else if (kind == "reasoning" && type == "item.completed") {
      tell(EventKind::thought, text_at(item, {"text"}));
    } else if (!tool.empty()) {
      const bool started = type == "item.started";
      if (!started && type != "item.completed") return true;
      if (started || kind == "file_change") {
        const std::string command = text_at(item, {"command"});
        const json& asked = at(item, {kind == "file_change" ? "changes" : "arguments"});
        tell(EventKind::tool_call, command.empty() ? asked.dump(-1, ' ', false, json::error_handler_t::replace) : command, tool);
      }
      if (started) return true;
      std::string out = text_at(item, {"aggregated_output"});
      if (out.empty()) out = text_at(item, {"error", "message"});
      const json& content = at(item, {"result", "content"});
      if (content.is_array())
        for (const json& each : content) out += text_at(each, {"text"});
      tell(EventKind::tool_result, out.empty() ? text_at(item, {"status"}) : out, tool);
    }
    return true;
  }

  void completed(const json& usage) {
    heard_.success = true;
    heard_.reason.clear();
    heard_.usage.cached_tokens = count_at(usage, {"cached_input_tokens"});
    heard_.usage.input_tokens = count_at(usage, {"input_tokens"});
    // It counts cached ones among the input.
    if (heard_.usage.input_tokens && heard_.usage.cached_tokens)
      heard_.usage.input_tokens = std::max<std::int64_t>(0, *heard_.usage.input_tokens - *heard_.usage.cached_tokens);
    heard_.usage.output_tokens = count_at(usage, {"output_tokens"});
    tell_usage();
  }

  bool sent_ = false;
};

class CodexDriver : public Driver {
 public:
  explicit CodexDriver(AgentSpec spec) : spec_(std::move(spec)) {}
  Result<TurnResult> run(const Turn& turn) override {
    ChildSpec child;
    child.argv = {"codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"};
    const auto set = [&](const std::string& key, const std::string& value) { child.argv.insert(child.argv.end(), {"-c", key + "=" + value}); };
    // `hone` speaks to its launcher through a socket.
    set("sandbox_workspace_write.network_access", "true");
    if (!spec_.model.empty()) set("model", toml(spec_.model));
    if (!spec_.effort.empty()) set("model_reasoning_effort", toml(spec_.effort));
    HONE_TRY(const auto servers, mcp_servers(turn.config));
    for (const McpServer& each : servers) {
      const std::string key = "mcp_servers." + each.name + ".";
      std::string args, env;
      for (const std::string& word : each.args) args += (args.empty() ? "" : ", ") + toml(word);
      for (const auto& [name, value] : each.env) env += (env.empty() ? "" : ", ") + name + " = " + toml(value);
      set(key + "command", toml(each.command));
      set(key + "args", "[" + args + "]");
      set(key + "env", "{" + env + "}");
      set(key + "env_vars", "[\"HONE_TOKEN\", \"HONE_TURN\"]");   // it hands nothing on by itself
      // Without these it may start without the server, cut a long measurement, or refuse the call.
      set(key + "required", "true");
      set(key + "startup_timeout_sec", "60");
      set(key + "tool_timeout_sec", "7200");
      set(key + "default_tools_approval_mode", "\"approve\"");
    }
    child.argv.emplace_back("-");
    CodexDialect dialect(turn);
    return run_dialect(child, turn, dialect);
  }

 private:
  AgentSpec spec_;
};

}  // namespace

std::unique_ptr<Driver> make_codex_driver(const AgentSpec& spec) { return std::make_unique<CodexDriver>(spec); }

}  // namespace hone
