#include "run/agent_files.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kToolLimit_s = 7200;       // a long measurement behind others in a queue
constexpr int kHookLimit_s = 30;

// Where this process keeps its things, said in a way that holds with any other HOME.
Result<std::map<std::string, std::string>> environment() {
  std::map<std::string, std::string> env;
  for (const char* name : {"PATH", "HONE_HOME", "HONE_WORKERS", "HONE_CUDA", "HONE_DEEPGEMM"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') env[name] = value;
  HONE_TRY(const fs::path share, share_dir());
  std::error_code code;
  env["HONE_SHARE"] = fs::absolute(share, code).lexically_normal().string();
  if (env.contains("HONE_HOME")) {
    env["HONE_HOME"] = fs::absolute(env["HONE_HOME"], code).string();
  } else {
    env["XDG_DATA_HOME"] = fs::absolute(data_dir().parent_path(), code).string();
    env["XDG_CACHE_HOME"] = fs::absolute(cache_dir().parent_path(), code).string();
    env["XDG_CONFIG_HOME"] = fs::absolute(config_dir().parent_path(), code).string();
  }
  return env;
}

std::string page(const json& value) { return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }
// JSON's strings and lists of strings are TOML's.
std::string toml(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

Result<std::map<std::string, std::string>> agent_files(const fs::path& root, const fs::path& program) {
  HONE_TRY(const auto env, environment());
  const json args = {"mcp", "--run", root.string()};
  std::map<std::string, std::string> files;
  files["mcp.json"] = page({{"mcpServers", {{"hone", {{"command", program.string()}, {"args", args}, {"env", env}, {"timeout", kToolLimit_s * 1000}}}}}});

  // Any failure of the hook's own must deny: claude goes on after every exit code but 2.
  const std::string hook = fmt::format("{} guard --run {} || exit 2", shell_word(program.string()), shell_word(root.string()));
  files["settings.json"] = page({{"permissions", {{"allow", {"mcp__hone", "Read", "Glob", "Grep", "Edit", "Write", "MultiEdit", "Bash"}}}},
                                 {"hooks",
                                  {{"PreToolUse", json::array({{{"matcher", "Edit|Write|MultiEdit|NotebookEdit|Bash"},
                                                                {"hooks", json::array({{{"type", "command"}, {"command", hook}, {"timeout", kHookLimit_s}}})}}})}}}});

  std::string table;
  for (const auto& [name, value] : env) table += fmt::format("{} = {}\n", name, toml(value));
  files["config.toml"] = fmt::format(
      "# For codex: as CODEX_HOME/config.toml. CODEX_HOME must not lie below the system's temporary folder.\n"
      "approval_policy = \"never\"\n"
      "sandbox_mode = \"workspace-write\"\n"
      "\n[sandbox_workspace_write]\nnetwork_access = true          # `hone` in the shell speaks to its launcher through a socket\n"
      "\n[shell_environment_policy]\ninherit = \"core\"               # the model's key does not reach commands\nignore_default_excludes = false\n"
      "\n[otel]\nmetrics_exporter = \"none\"\n"
      "\n[features]\nplugins = false\n"
      "\n[analytics]\nenabled = false\n"
      "\n[mcp_servers.hone]\n"
      "command = {}\n"
      "args = {}\n"
      "env_vars = [\"HONE_TOKEN\", \"HONE_TURN\"]   # handed on by name: no secret stands here\n"
      "required = true                 # else the first turn begins without the tools\n"
      "startup_timeout_sec = 60\n"
      "tool_timeout_sec = {}\n"
      "default_tools_approval_mode = \"approve\"\n"
      "\n[mcp_servers.hone.env]\n{}",
      toml(program.string()), toml(args), kToolLimit_s, table);
  return files;
}

}  // namespace hone
