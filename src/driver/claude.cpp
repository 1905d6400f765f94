// Claude Code: `claude -p --output-format stream-json`, the prompt on standard input, one JSON event a line.
//
// Failures of the service come as a result event of subtype "success" with is_error true; exit code 0 follows a SIGINT too.
#include <set>

#include "base/json.h"
#include "driver/program.h"
#include "driver/text.h"

namespace hone {
namespace {

using nlohmann::json;

Usage usage_of(const json& usage) {
  Usage out;
  out.input_tokens = count_at(usage, {"input_tokens"});
  if (const auto made = count_at(usage, {"cache_creation_input_tokens"})) out.input_tokens = out.input_tokens.value_or(0) + *made;
  out.cached_tokens = count_at(usage, {"cache_read_input_tokens"});
  out.output_tokens = count_at(usage, {"output_tokens"});
  return out;
}

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

// Text of a tool's result: a string, or blocks of which some are text.
std::string text_of(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (content.is_array())
    for (const json& each : content) out += text_at(each, {"text"});
  return out;
}

class ClaudeDialect : public Dialect {
 public:
  using Dialect::Dialect;

  std::string to_send() override { return std::exchange(sent_, true) ? std::string() : turn_.prompt; }
  // Its closing event was the last word: a program that stays all the same is ended.
  bool over() override { return heard_.success.has_value(); }

  bool line(std::string_view text) override {
    const auto event = parse_json(text);
    if (!event) return false;
    const std::string type = text_at(*event, {"type"});
    if (type == "system") return system(*event);
    if (type == "assistant") return assistant(*event);
    if (type == "user") return user(*event);
    if (type == "result") return result(*event);
    return false;                        // heartbeats of a running tool: its CPU time is the sign of life
  }

 private:
  bool system(const json& event) {
    const std::string subtype = text_at(event, {"subtype"});
    if (subtype == "api_retry") {
      const auto status = count_at(event, {"error_status"});
      tell(EventKind::retry, status ? std::to_string(*status) : "no connection");
      return false;
    }
    if (subtype == "init") heard_.session = text_at(event, {"session_id"});
    if (subtype == "permission_denied") tell(EventKind::permission, "denied: " + text_at(event, {"tool_name"}), text_at(event, {"tool_name"}));
    for (const json& server : at(event, {"mcp_servers"}))
      if (text_at(server, {"status"}) == "failed") tell(EventKind::note, "MCP server " + text_at(server, {"name"}) + " could not be started");
    return true;
  }

  bool assistant(const json& event) {
    if (const std::string error = text_at(event, {"error"}); !error.empty()) error_ = error;
    for (const json& block : at(event, {"message", "content"})) {
      const std::string type = text_at(block, {"type"});
      if (type == "text") {
        heard_.last_text = text_at(block, {"text"});
        tell(EventKind::text, heard_.last_text);
      } else if (type == "thinking") {
        tell(EventKind::thought, text_at(block, {"thinking"}));
      } else if (type == "tool_use") {
        names_[text_at(block, {"id"})] = text_at(block, {"name"});
        tell(EventKind::tool_call, at(block, {"input"}).dump(-1, ' ', false, json::error_handler_t::replace), text_at(block, {"name"}));
      }
    }
    // A message comes in several events, each with its use.
    if (counted_.insert(text_at(event, {"uuid"}) + text_at(event, {"message", "id"})).second) {
      const Usage more = usage_of(at(event, {"message", "usage"}));
      add(heard_.usage.input_tokens, more.input_tokens);
      add(heard_.usage.cached_tokens, more.cached_tokens);
      add(heard_.usage.output_tokens, more.output_tokens);
      tell_usage();
    }
    return true;
  }

  bool user(const json& event) {
    const json& content = at(event, {"message", "content"});
    if (!content.is_array()) return true;
    for (const json& block : content)
      if (text_at(block, {"type"}) == "tool_result") {
        const auto name = names_.find(text_at(block, {"tool_use_id"}));
        tell(EventKind::tool_result, text_of(at(block, {"content"})), name == names_.end() ? "" : name->second);
      }
    return true;
  }

  bool result(const json& event) {
    const json& is_error = at(event, {"is_error"});
    const std::string subtype = text_at(event, {"subtype"});
    heard_.success = is_error.is_boolean() && !is_error.get<bool>() && subtype == "success";
    heard_.usage = usage_of(at(event, {"usage"}));
    if (const json& cost = at(event, {"total_cost_usd"}); cost.is_number() && cost.get<double>() >= 0) heard_.usage.cost_usd = cost.get<double>();
    tell_usage();
    const std::string said = text_at(event, {"result"});
    if (*heard_.success) {
      if (!said.empty()) heard_.last_text = said;
      return true;
    }
    std::string& reason = heard_.reason;
    if (const auto status = count_at(event, {"api_error_status"})) reason = std::to_string(*status) + " ";
    if (!error_.empty()) reason += error_ + ": ";
    const json& errors = at(event, {"errors"});
    if (!said.empty()) reason += said;
    else if (errors.is_array() && !errors.empty() && errors[0].is_string()) reason += errors[0].get<std::string>();
    else reason += subtype;
    return true;
  }

  bool sent_ = false;
  std::string error_;
  std::map<std::string, std::string> names_;
  std::set<std::string> counted_;
};

class ClaudeDriver : public Driver {
 public:
  explicit ClaudeDriver(AgentSpec spec) : spec_(std::move(spec)) {}
  Result<TurnResult> run(const Turn& turn) override {
    ChildSpec child;
    child.argv = {"claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"};
    if (!spec_.model.empty()) child.argv.insert(child.argv.end(), {"--model", spec_.model});
    if (!spec_.effort.empty()) child.argv.insert(child.argv.end(), {"--effort", spec_.effort});
    std::error_code code;
    HONE_TRY(const auto servers, mcp_servers(turn.config));
    std::string allowed = "Bash Read Edit Write MultiEdit Glob Grep mcp__hone";
    for (const McpServer& each : servers)
      if (each.name != "hone") allowed += " mcp__" + each.name;
    if (!servers.empty()) child.argv.insert(child.argv.end(), {"--mcp-config", (turn.config / "mcp.json").string()});
    if (fs::exists(turn.config / "settings.json", code)) child.argv.insert(child.argv.end(), {"--settings", (turn.config / "settings.json").string()});
    child.argv.insert(child.argv.end(), {"--strict-mcp-config", "--allowedTools", allowed});
    // Its own ten tries take three minutes to say that a key is wrong, and one answer may take ten.
    child.env = {"CLAUDE_CODE_MAX_RETRIES=4", "API_TIMEOUT_MS=300000"};
    ClaudeDialect dialect(turn);
    return run_dialect(child, turn, dialect);
  }

 private:
  AgentSpec spec_;
};

}  // namespace

std::unique_ptr<Dialect> make_claude_dialect(const Turn& turn) { return std::make_unique<ClaudeDialect>(turn); }
std::unique_ptr<Driver> make_claude_driver(const AgentSpec& spec) { return std::make_unique<ClaudeDriver>(spec); }

}  // namespace hone
