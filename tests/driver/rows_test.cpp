// What the real programs print when something fails, measured, replayed line by line: what the driver makes of it.
#include <signal.h>

#include "fake.h"

namespace hone {
namespace {

using testing::Fake;

struct Row {
  const char* name;
  const char* lines;       // of standard output
  const char* after;       // shell: the exit
  TurnEnd end;
  const char* reason;      // a part of it
};

void expect_rows(const std::string& program, std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    Fake fake(program + "-row-" + row.name);
    fake.turn.limits.silence_s = 1.5;
    fake.program(program, "cat > /dev/null\ncat <<'END'\n" + std::string(row.lines) + "\nEND\n" + row.after);
    const TurnResult done = fake.run(program);
    EXPECT_EQ(done.end, row.end) << row.name << ": " << done.reason;
    EXPECT_NE(done.reason.find(row.reason), std::string::npos) << row.name << ": " << done.reason;
    EXPECT_FALSE(done.usage.input_tokens == 0 && done.usage.output_tokens == 0) << row.name << ": what is unknown is not nought";
  }
}

TEST(Rows, Claude) {
  const TurnEnd failed = TurnEnd::failed;
  expect_rows("claude", {
      {"port-closed", R"({"type":"system","subtype":"api_retry","error_status":null}
{"type":"result","subtype":"success","is_error":true,"result":"API Error: Connection refused"})", "exit 1", failed, "Connection refused"},
      {"401", R"({"type":"assistant","error":"authentication_failed","message":{"content":[{"type":"text","text":"Invalid API key"}]}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid API key"})", "exit 1", failed, "401 authentication_failed"},
      {"too-long", R"({"type":"result","subtype":"success","is_error":true,"api_error_status":400,"terminal_reason":"prompt_too_long","result":"Prompt is too long"})", "exit 1", failed, "Prompt is too long"},
      {"no-model", R"({"type":"assistant","error":"model_not_found","message":{"content":[]}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":404,"result":"no such model"})", "exit 1", failed, "404 model_not_found"},
      {"529", R"({"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Repeated 529 Overloaded"})", "exit 1", failed, "Overloaded"},
      {"bad-body", R"X({"type":"result","subtype":"success","is_error":true,"result":"API returned an empty or malformed response (HTTP 200)"})X", "exit 1", failed, "malformed response"},
      {"turns", R"X({"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":4,"errors":["Reached maximum number of turns (3)"]})X", "exit 1", failed, "maximum number of turns"},
      {"interrupted", R"({"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}
{"type":"result","subtype":"error_during_execution","is_error":false,"terminal_reason":"aborted_streaming"})", "exit 0", failed, "error_during_execution"},
      {"resume", R"({"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]})", "exit 1", failed, "No conversation found"},
      {"denied", R"({"type":"system","subtype":"permission_denied","tool_name":"Write"}
{"type":"result","subtype":"success","is_error":false,"result":"I could not","permission_denials":[{"tool_name":"Write"}]})", "exit 0", TurnEnd::finished, "done"},
      {"bad-id", "", "echo 'Invalid session ID. Must be a valid UUID.' >&2; exit 1", failed, "exit 1: Invalid session ID"},
      {"root", "", "echo '--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons' >&2; exit 1", failed, "cannot be used with root"},
      {"terminated", R"({"type":"system","subtype":"init","session_id":"s"})", "exit 143", failed, "exit 143"},
      {"killed", R"({"type":"system","subtype":"init","session_id":"s"})", "kill -KILL $$", failed, "signal 9"},
      {"mute", R"({"type":"system","subtype":"init","session_id":"s"})", "exec sleep 100", TurnEnd::silent, "no output"},
      {"heartbeats", R"({"type":"system","subtype":"init","session_id":"s"})",
       R"(while sleep 0.3; do echo '{"type":"tool_progress","tool_name":"Bash","elapsed_time_seconds":30,"heartbeat":true}'; done)", TurnEnd::silent, "no output"},
  });
}

TEST(Rows, Codex) {
  const TurnEnd failed = TurnEnd::failed;
  const char* const started = R"({"type":"thread.started","thread_id":"t"}
{"type":"turn.started"})";
  expect_rows("codex", {
      {"port-closed", started, R"(while sleep 0.3; do echo '{"type":"error","message":"Reconnecting... waiting for network"}'; done)", TurnEnd::silent, "no output"},
      {"mute", started, "exec sleep 100", TurnEnd::silent, "no output"},
      {"401", R"X({"type":"error","message":"Reconnecting... 5/5 (unexpected status 401 Unauthorized)"}
{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: bad key"}})X", "exit 1", failed, "401 Unauthorized"},
      {"too-long", R"({"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"prompt is too long\",\"type\":\"invalid_request_error\"}}"}})", "exit 1", failed, "prompt is too long"},
      {"quota", R"({"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}})", "exit 1", failed, "Quota exceeded"},
      {"cut", R"({"type":"turn.failed","error":{"message":"stream disconnected before completion: stream closed before response.completed"}})", "exit 1", failed, "stream closed"},
      {"idle", R"({"type":"turn.failed","error":{"message":"stream disconnected before completion: idle timeout waiting for SSE"}})", "exit 1", failed, "idle timeout"},
      {"interrupted", started, "exit 1", failed, "exit 1"},
      {"terminated", started, "kill -TERM $$", failed, "signal 15"},
      {"only-errors", R"({"type":"error","message":"Reconnecting... 1/5"})", "exit 1", failed, "Reconnecting"},
      {"server", "", "echo 'Error: required MCP servers failed to initialize: hone' >&2; exit 1", failed, "required MCP servers failed"},
      {"nothing-said", R"({"type":"item.completed","item":{"type":"agent_message","text":"done"}})", "exit 0", failed, "no closing event"},
      {"unknown-model", R"({"type":"item.completed","item":{"type":"error","message":"Model metadata for `x` not found"}}
{"type":"item.completed","item":{"type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}})", "exit 0", TurnEnd::finished, "done"},
      {"retried", R"({"type":"error","message":"Reconnecting... 1/5"}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}})", "exit 0", TurnEnd::finished, "done"},
  });
}

TEST(Rows, SeveralLastWordsAreInTheTrace) {
  Fake fake("last-words");
  fake.program("codex", "echo 'Traceback:' >&2; echo 'no such file: model.toml' >&2; exit 1");
  EXPECT_EQ(fake.run("codex").reason, "exit 1: no such file: model.toml");
  EXPECT_NE(fake.said(EventKind::note).find("Traceback:"), std::string::npos);
}

TEST(Rows, ATurnIsCodexsOwnSettingsToo) {
  Fake fake("settings");
  fake.program("codex", R"(cat > /dev/null; printf '%s\n' "$@" > arguments; env > environment; echo '{"type":"turn.completed"}')");
  fake.turn.config = fake.folder / "agents";
  fs::create_directories(fake.turn.config);
  ASSERT_TRUE(write_file_atomic(fake.turn.config / "config.toml", "approval_policy = \"never\"\n[features]\nplugins = false\n[mcp_servers.hone]\ncommand = \"/x/ho\\\"ne\"\n"
                                                                  "args = [\"mcp\", \"--run\"]\nenv_vars = [\"HONE_TURN\"]\ntool_timeout_sec = 7200\n[mcp_servers.hone.env]\nA = \"b c\"\n"));
  fake.turn.env.insert(fake.turn.env.end(), {"HONE_TURN=3", "HONE_TOKEN=secret-words"});
  EXPECT_EQ(fake.run("codex").end, TurnEnd::finished);
  const std::string arguments = *read_file(fake.turn.cwd / "arguments");
  for (const char* part : {"approval_policy=\"never\"\n", "features.plugins=false\n", "mcp_servers.hone.command=\"/x/ho\\\"ne\"\n", "mcp_servers.hone.tool_timeout_sec=7200\n",
                           "mcp_servers.hone.env.A=\"b c\"\n", "shell_environment_policy.set.HONE_TURN=\"3\"\n"})
    EXPECT_NE(arguments.find(part), std::string::npos) << part << arguments;
  EXPECT_EQ(arguments.find("secret-words"), std::string::npos) << "a command line is seen by everybody";
  EXPECT_EQ(read_file(fake.turn.cwd / "environment")->find("CODEX_HOME"), std::string::npos);
  ASSERT_TRUE(write_file_atomic(fake.turn.config / "config.toml", "approval_policy = \n"));
  const auto bad = (*make_driver(*parse_agent_spec("codex")))->run(fake.turn);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::contract);
}

TEST(Rows, ClaudeTriesForSecondsUnlessTold) {
  Fake fake("tries");
  fake.program("claude", R"(cat > /dev/null; env > environment; echo '{"type":"result","subtype":"success","is_error":false}')");
  fake.run("claude");
  EXPECT_NE(read_file(fake.turn.cwd / "environment")->find("CLAUDE_CODE_MAX_RETRIES=4\n"), std::string::npos);
  fake.turn.env.emplace_back("CLAUDE_CODE_MAX_RETRIES=0");
  fake.run("claude");
  EXPECT_NE(read_file(fake.turn.cwd / "environment")->find("CLAUDE_CODE_MAX_RETRIES=0\n"), std::string::npos);
}

}  // namespace
}  // namespace hone
