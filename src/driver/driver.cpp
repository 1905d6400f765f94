#include "driver/driver.h"

#include "base/text.h"
#include "driver/program.h"

namespace hone {
namespace {

struct Kind {
  std::string_view name;
  bool takes_program;                    // after a colon; else a model after a slash
  std::unique_ptr<Driver> (*make)(const AgentSpec& spec);
};
constexpr Kind kKinds[] = {
    {"claude", false, make_claude_driver},
    {"codex", false, make_codex_driver},
    {"command", true, make_command_driver},
    {"acp", true, make_acp_driver},
};

const Kind* find_kind(std::string_view name) {
  for (const Kind& each : kKinds)
    if (each.name == name) return &each;
  return nullptr;
}

bool plain(std::string_view word) {
  return !word.empty() && word.front() != '-' &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0 || std::string_view("-_./@[]").find(static_cast<char>(c)) != std::string_view::npos; });
}

}  // namespace

std::string_view name_of(EventKind kind) {
  static constexpr std::string_view names[] = {"started", "text", "thought", "tool_call", "tool_result", "usage", "retry", "permission", "note", "fault"};
  return names[static_cast<int>(kind)];
}

std::string_view name_of(TurnEnd end) {
  static constexpr std::string_view names[] = {"finished", "failed", "silent", "overtime", "flooded", "cancelled"};
  return names[static_cast<int>(end)];
}

Result<AgentSpec> parse_agent_spec(std::string_view text) {
  const auto bad = [&](std::string_view what, std::string hint) {
    return fail(make_error(ErrorKind::usage, "agent {}: {}", text.substr(0, std::min(text.size(), text.find(' '))), what).with_hint(std::move(hint)));
  };
  const std::string_view name = text.substr(0, text.find_first_of(":/"));
  const Kind* kind = find_kind(name);
  if (kind == nullptr) {
    const std::string near = nearest(name, {"claude", "codex", "command", "acp", "tuner"});
    return bad("is of no known kind", near.empty() ? "claude/MODEL:EFFORT, codex/MODEL:EFFORT, command:PATH, acp:PATH, tuner[:STRATEGY]" : "did you mean " + near + "?");
  }
  AgentSpec spec;
  spec.kind = name;
  spec.text = text;
  std::string_view rest = text.substr(name.size());
  if (kind->takes_program) {
    if (!rest.starts_with(':')) return bad("names no program", fmt::format("{}:/path/to/program", name));
    spec.program = rest.substr(1);
    const auto words = words_of(spec.program);
    if (words.empty() || words[0].empty()) return bad("names no program", fmt::format("{}:/path/to/program", name));
    // Arguments may hold secrets; the program's own name does not.
    spec.name = spec.kind + ":" + fs::path(words[0]).filename().string();
    return spec;
  }
  if (rest.starts_with('/')) {
    rest.remove_prefix(1);
    const std::size_t colon = rest.rfind(':');
    spec.model = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon);
    if (!plain(spec.model)) return bad("that is no name of a model", fmt::format("{}/MODEL:EFFORT", name));
  }
  if (rest.starts_with(':')) {
    spec.effort = rest.substr(1);
    if (!plain(spec.effort)) return bad("that is no effort", fmt::format("{}/MODEL:high", name));
  }
  spec.name = spec.text;
  return spec;
}

Result<std::unique_ptr<Driver>> make_driver(const AgentSpec& spec) {
  const Kind* kind = find_kind(spec.kind);
  if (kind == nullptr) return fail(make_error(ErrorKind::usage, "{} is no driver", spec.kind).with_hint("claude, codex, command, acp"));
  return kind->make(spec);
}

}  // namespace hone
