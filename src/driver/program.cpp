#include "driver/program.h"

#include "base/clock.h"
#include "base/json.h"
#include "driver/text.h"

namespace hone {

using nlohmann::json;

Dialect::Dialect(const Turn& turn) : turn_(turn), start_s_(now_s()) {}

void Dialect::tell(EventKind kind, std::string_view text, std::string_view tool) {
  if (turn_.on_event) turn_.on_event({kind, now_s() - start_s_, clip(text), clip(tool, 200), {}});
}

void Dialect::tell_usage() {
  if (turn_.on_event) turn_.on_event({EventKind::usage, now_s() - start_s_, {}, {}, heard_.usage});
}

Result<TurnResult> run_dialect(const ChildSpec& spec, const Turn& turn, Dialect& dialect) {
  dialect.tell(EventKind::started, dialect.input_done() ? "standard input: the prompt or nothing, then end of file" : "standard input: a pipe, for the protocol");
  HONE_TRY(const ChildEnd end, run_child(spec, turn, dialect));
  const Heard& heard = dialect.heard();
  TurnResult result;
  result.exit_code = end.exit_code;
  result.signal = end.signal;
  result.left_behind = end.left_behind;
  result.wall_s = end.wall_s;
  result.usage = heard.usage;
  result.session = clip(heard.session, 200);
  result.last_text = clip(heard.last_text);
  if (end.left_behind > 0) dialect.tell(EventKind::note, fmt::format("{} process(es) outlived the program and were ended", end.left_behind));
  if (end.cut) {
    result.end = *end.cut;
    result.reason = end.cut_reason;
  } else if (heard.success == true && (end.exit_code == 0 || end.pressed || !dialect.exit_counts())) {
    result.end = TurnEnd::finished;
    result.reason = heard.reason.empty() ? "done" : one_line(heard.reason);
  } else {
    result.end = TurnEnd::failed;
    result.reason = one_line(heard.reason);
    if (result.reason.empty() && heard.success == true && dialect.over() && end.exit_code)
      result.reason = fmt::format("it said that it was done, and then: exit {}", *end.exit_code);
    if (result.reason.empty() && end.signal) result.reason = fmt::format("ended by signal {}", *end.signal);
    if (result.reason.empty()) {
      // Set-up errors have no event: what was said last on standard error is all there is.
      std::string_view said = end.err;
      while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.remove_suffix(1);
      const std::string last = one_line(said.substr(said.rfind('\n') + 1));
      if (said.find('\n') != std::string_view::npos)
        dialect.tell(EventKind::note, "standard error: " + clip(said.substr(said.size() - std::min<std::size_t>(said.size(), 2048))));
      result.reason = fmt::format("exit {}{}", end.exit_code.value_or(-1), last.empty() ? ", and no closing event" : ": " + last);
    }
  }
  if (result.end != TurnEnd::finished) dialect.tell(EventKind::fault, result.reason);
  return result;
}

Result<std::vector<McpServer>> mcp_servers(const fs::path& config) {
  std::vector<McpServer> out;
  const fs::path file = config / "mcp.json";
  std::error_code code;
  if (config.empty() || !fs::exists(file, code)) return out;
  HONE_TRY(const std::string text, read_file(file, std::size_t{1} << 20));
  auto parsed = parse_json(text);
  if (!parsed) return fail(std::move(parsed.error()).at({file.string()}));
  for (const auto& [name, each] : at(*parsed, {"mcpServers"}).items()) {
    McpServer server{name, text_at(each, {"command"}), {}, {}};
    if (server.command.empty()) return fail(make_error(ErrorKind::contract, "MCP server {} has no command", name).at({file.string()}));
    for (const json& word : at(each, {"args"}))
      if (word.is_string()) server.args.push_back(word.get<std::string>());
    for (const auto& [variable, value] : at(each, {"env"}).items())
      if (value.is_string()) server.env[variable] = value.get<std::string>();
    out.push_back(std::move(server));
  }
  return out;
}

std::map<std::string, std::string> own_variables(const Turn& turn) {
  std::map<std::string, std::string> out;
  for (const std::string& each : turn.env)
    if (const std::size_t equals = each.find('='); each.starts_with("HONE_") && equals != std::string::npos) out[each.substr(0, equals)] = each.substr(equals + 1);
  return out;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) quote = 0;
      else word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) out.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) out.push_back(word);
  return out;
}

}  // namespace hone
