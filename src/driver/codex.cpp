// Codex: `codex exec --json`, the prompt on standard input, one JSON event a line.
//
// It ends with no closing event on any signal, and can wait for the network for ever while it says so line by line.
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/json.h"
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

using nlohmann::json;

// A TOML value: JSON's escapes of a string are TOML's.
std::string toml_text(const std::string& text) { return json(text).dump(-1, ' ', true, json::error_handler_t::replace); }

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

// A table's settings as key=value, one each: what a person has in a CODEX_HOME of their own stays in force beside them.
void flatten(const toml::table& table, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const bool bare = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
    const std::string path = prefix + (bare ? name : toml_text(name));
    if (const toml::table* below = value.as_table(); below != nullptr && !below->empty()) {
      flatten(*below, path + ".", out);
      continue;
    }
    std::ostringstream text;
    if (const auto* word = value.as_string()) text << toml_text(word->get());
    else value.visit([&](const auto& node) { text << node; });
    out.push_back(path + "=" + text.str());
  }
}

// Of CONFIG/config.toml; none when there is no such file. Kind contract: it is malformed.
Result<std::vector<std::string>> settings_of(const fs::path& config) {
  std::vector<std::string> out;
  const fs::path file = config / "config.toml";
  std::error_code code;
  if (config.empty() || !fs::exists(file, code)) return out;
  HONE_TRY(const std::string text, read_file(file, std::size_t{1} << 20));
  try {
    flatten(toml::parse(text), "", out);
  } catch (const toml::parse_error& error) {
    return fail(make_error(ErrorKind::contract, "{}", error.description()).at({file.string(), static_cast<int>(error.source().begin.line), 0}));
  }
  return out;
}

class CodexDriver : public Driver {
 public:
  explicit CodexDriver(AgentSpec spec) : spec_(std::move(spec)) {}
  Result<TurnResult> run(const Turn& turn) override {
    ChildSpec child;
    child.argv = {"codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"};
    const auto set = [&](const std::string& setting) { child.argv.insert(child.argv.end(), {"-c", setting}); };
    // A login shell's profile would set a PATH of its own, without this `hone`. What config.toml says of it comes later and wins.
    set("allow_login_shell=false");
    if (!spec_.model.empty()) set("model=" + toml_text(spec_.model));
    if (!spec_.effort.empty()) set("model_reasoning_effort=" + toml_text(spec_.effort));
    HONE_TRY(const auto settings, settings_of(turn.config));
    for (const std::string& each : settings) set(each);
    if (settings.empty()) HONE_CHECK(servers(turn, set));
    // Its shell may see no more than a few names: that it works in a turn has to be among them. No secret goes this way.
    for (const std::string& each : turn.env) {
      const std::size_t equals = each.find('=');
      if (each.starts_with("HONE_") && equals != std::string::npos && each.substr(0, equals).find("TOKEN") == std::string::npos)
        set("shell_environment_policy.set." + each.substr(0, equals) + "=" + toml_text(each.substr(equals + 1)));
    }
    child.argv.emplace_back("-");
    CodexDialect dialect(turn);
    return run_dialect(child, turn, dialect);
  }

 private:
  // Where only mcp.json is there.
  template <class Set>
  static Result<> servers(const Turn& turn, const Set& set) {
    // `hone` speaks to its launcher through a socket.
    set("sandbox_workspace_write.network_access=true");
    HONE_TRY(const auto all, mcp_servers(turn.config));
    for (const McpServer& each : all) {
      const std::string key = "mcp_servers." + each.name + ".";
      std::string args;
      for (const std::string& word : each.args) args += (args.empty() ? "" : ", ") + toml_text(word);
      set(key + "command=" + toml_text(each.command));
      set(key + "args=[" + args + "]");
      for (const auto& [name, value] : each.env) set(key + "env." + name + "=" + toml_text(value));
      // Without these it may start without the server, cut a long measurement, or refuse the call.
      set(key + "required=true");
      set(key + "startup_timeout_sec=60");
      set(key + "tool_timeout_sec=7200");
      set(key + "default_tools_approval_mode=\"approve\"");
    }
    return {};
  }

  AgentSpec spec_;
};

}  // namespace

std::unique_ptr<Dialect> make_codex_dialect(const Turn& turn) { return std::make_unique<CodexDialect>(turn); }
std::unique_ptr<Driver> make_codex_driver(const AgentSpec& spec) { return std::make_unique<CodexDriver>(spec); }

}  // namespace hone
