// Programs that speak a known format wrongly: nothing they claim makes a turn good by itself.
#include "fake.h"

namespace hone {
namespace {

using testing::Fake;

const char* const kInit = R"({"type":"system","subtype":"init","session_id":"s1","mcp_servers":[{"name":"hone","status":"failed"}]})";
const char* const kDone = R"({"type":"result","subtype":"success","is_error":false,"result":"done","usage":{"input_tokens":5,"output_tokens":2},"total_cost_usd":0.5})";

TurnResult claude(Fake& fake, const std::string& lines, const std::string& after = "") {
  fake.program("claude", "cat > /dev/null\ncat <<'END'\n" + lines + "\nEND\n" + after);
  return fake.run("claude");
}

TEST(Claude, AResultEventAndAGoodExitTogetherAreAnEnd) {
  Fake fake("claude");
  const TurnResult done = claude(fake, std::string(kInit) + "\n" + kDone);
  EXPECT_EQ(done.end, TurnEnd::finished);
  EXPECT_EQ(done.session, "s1");
  EXPECT_EQ(done.usage.output_tokens, 2);
  EXPECT_EQ(done.usage.cost_usd, 0.5);
  EXPECT_NE(fake.said(EventKind::note).find("hone"), std::string::npos) << "a server that failed is said";
}

TEST(Claude, EitherAloneIsNone) {
  Fake silent("claude-silent");
  EXPECT_EQ(claude(silent, kInit).end, TurnEnd::failed);
  EXPECT_NE(claude(silent, kInit).reason.find("no closing event"), std::string::npos);
  Fake bad("claude-exit");
  EXPECT_EQ(claude(bad, kDone, "exit 1").end, TurnEnd::failed);
}

TEST(Claude, ASuccessThatIsAnErrorIsAFailure) {
  Fake fake("claude-error");
  const TurnResult done = claude(fake, R"({"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"bad key"})", "exit 1");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_EQ(done.reason, "401 bad key");
}

TEST(Claude, NonsenseIsSurvived) {
  Fake fake("claude-nonsense");
  std::string deep(5000, '[');
  const TurnResult done = claude(fake, "not json\n{\"type\":7}\n[]\nnull\n" + deep + R"(
{"type":"assistant","message":"text"}
{"type":"assistant","message":{"content":[1,{"type":"tool_use","name":["x"]}],"usage":{"input_tokens":-5,"output_tokens":1e300}}}
{"type":"user","message":{"content":{"a":1}}}
{"type":"system","subtype":"init","mcp_servers":"all"}
{"type":"result","subtype":"success","is_error":"no","usage":[]})");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_FALSE(done.usage.input_tokens);
  EXPECT_FALSE(done.usage.output_tokens);
}

TEST(Claude, OtherTriesAreNoSignOfLife) {
  Fake fake("claude-retry");
  fake.turn.limits.silence_s = 1;
  fake.program("claude", R"(while sleep 0.2; do echo '{"type":"system","subtype":"api_retry","error_status":500}'; done)");
  EXPECT_EQ(fake.run("claude").end, TurnEnd::silent);
  EXPECT_NE(fake.said(EventKind::retry).find("500"), std::string::npos);
}

TEST(Codex, ItsOwnWordsAreTheReason) {
  Fake fake("codex");
  fake.program("codex", R"(cat > prompt; printf '%s\n' "$@" > arguments
echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"turn.failed","error":{"message":"unexpected status 400: {\"error\":{\"message\":\"prompt is too long\"}}"}}'; exit 1)");
  fs::create_directories(fake.folder / "agents");
  ASSERT_TRUE(write_file_atomic(fake.folder / "agents/mcp.json", R"({"mcpServers":{"hone":{"command":"/x/ho\"ne","args":["mcp"],"env":{"A":"b c"}}}})"));
  fake.turn.config = fake.folder / "agents";
  const TurnResult done = fake.run("codex/big:high");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_EQ(done.reason, "unexpected status 400: prompt is too long");
  EXPECT_EQ(*read_file(fake.turn.cwd / "prompt"), "the prompt\n");
  const std::string arguments = *read_file(fake.turn.cwd / "arguments");
  for (const char* part : {"model=\"big\"", "model_reasoning_effort=\"high\"", "mcp_servers.hone.command=\"/x/ho\\\"ne\"", "mcp_servers.hone.env.A=\"b c\"",
                           "mcp_servers.hone.required=true", "mcp_servers.hone.default_tools_approval_mode=\"approve\""})
    EXPECT_NE(arguments.find(part), std::string::npos) << part << "\n" << arguments;
}

TEST(Codex, AMalformedServerFileIsAnError) {
  Fake fake("codex-mcp");
  fs::create_directories(fake.folder / "agents");
  ASSERT_TRUE(write_file_atomic(fake.folder / "agents/mcp.json", "{\"mcpServers\": {\"hone\": {}}}"));
  fake.turn.config = fake.folder / "agents";
  fake.program("codex", "true");
  const auto done = (*make_driver(*parse_agent_spec("codex")))->run(fake.turn);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::contract);
}

// A peer that reads a line and answers each with a fixed text, told by its method.
TurnResult acp(Fake& fake, const std::string& answers) {
  fake.program("peer", "while IFS= read -r line; do\ncase $line in\n" + answers + "\nesac\ndone");
  return fake.run("acp:peer");
}
const std::string kOpen = R"(*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}';;
*'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}';;
)";

TEST(Acp, ATurnWithAPermission) {
  Fake fake("acp");
  const TurnResult done = acp(fake, kOpen + R"(*'"session/prompt"'*) echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"toolCall":{"title":"run"},"options":[{"optionId":"no","kind":"reject_once"},{"optionId":"odd","kind":"allow_once"}]}}';;
*'"odd"'*) echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"allowed"}}}}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":1}}}';;)");
  EXPECT_EQ(done.end, TurnEnd::finished) << done.reason;
  EXPECT_EQ(done.last_text, "allowed");
  EXPECT_EQ(done.usage.input_tokens, 7);
  EXPECT_NE(fake.said(EventKind::permission).find("allow_once: run"), std::string::npos);
}

TEST(Acp, AnEndWithoutAWordIsAFailure) {
  Fake fake("acp-mute");
  const TurnResult done = acp(fake, kOpen + R"(*'"session/prompt"'*) echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}';;)");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_NE(done.reason.find("without a word"), std::string::npos);
}

TEST(Acp, AnErrorCarriesItsReason) {
  Fake fake("acp-error");
  const TurnResult done = acp(fake, R"(*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"reason":"no key"}}}';;)");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_EQ(done.reason, "Internal error: no key");
}

TEST(Acp, WrongIdsAndNoiseChangeNothing) {
  Fake fake("acp-ids");
  const TurnResult done = acp(fake, R"(*'"initialize"'*) echo noise; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; echo '{"jsonrpc":"2.0","id":1,"result":{}}';;
*'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}';;
*'"session/prompt"'*) echo '{"jsonrpc":"2.0","id":9,"method":"terminal/create","params":{}}';;
*'-32601'*) echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"refusal"}}';;)");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_NE(done.reason.find("refusal"), std::string::npos) << done.reason;
  EXPECT_NE(fake.said(EventKind::note).find("not a message: noise"), std::string::npos);
}

TEST(Acp, WhatItChangesOutsideIsRejected) {
  struct Row {
    const char* call;
    const char* option;     // that is chosen; empty: none
  };
  // By kind of the call and of the option; the ids of the options are odd on purpose.
  for (const Row& row : {Row{R"({"toolCallId":"c","kind":"edit","title":"Edit","locations":[{"path":"/etc/passwd"}]})", "B"},
                         Row{R"({"toolCallId":"c","title":"Write","content":[{"type":"diff","path":"../../x","newText":"a"}]})", "B"},
                         Row{R"({"toolCallId":"c","kind":"edit","title":"Edit","rawInput":{"file_path":"below/new.cpp"}})", "A"},
                         Row{R"({"toolCallId":"c","kind":"edit","title":"Edit","rawInput":{"file_path":"link/new.cpp"}})", "B"},
                         Row{R"({"toolCallId":"c","kind":"read","title":"Read","locations":[{"path":"/etc/hostname"}]})", "A"},
                         Row{R"({"toolCallId":"c","kind":"read","title":"Read","locations":[{"path":"SIBLING/run"}]})", "B"},
                         Row{R"({"toolCallId":"c"})", "B"}}) {   // what it is was told before
    Fake fake("acp-permit");
    fs::create_directory_symlink("/etc", fake.turn.cwd / "link");
    fs::create_directories(fake.folder / "sibling");
    fake.turn.hidden = {fake.folder / "sibling"};
    std::string call = row.call;
    if (const std::size_t mark = call.find("SIBLING"); mark != std::string::npos) call.replace(mark, 7, (fake.folder / "sibling").string());
    acp(fake, kOpen + R"(*'"session/prompt"'*) echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","kind":")" +
                  (call.find("kind") == std::string::npos && call.find("diff") == std::string::npos ? "delete" : "other") + R"(","locations":)" +
                  (call == R"({"toolCallId":"c"})" ? R"([{"path":"/outside"}])" : "[]") + R"(}}}'
echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"toolCall":)" + call +
                  R"(,"options":[{"optionId":"B","kind":"reject_once"},{"optionId":"C","kind":"allow_always"},{"optionId":"A","kind":"allow_once"}]}}';;
*'"id":"q"'*) printf '%s' "$line" > answer; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}';;)");
    const std::string answer = *read_file(fake.turn.cwd / "answer");
    EXPECT_NE(answer.find("\"optionId\":\"" + std::string(row.option) + "\""), std::string::npos) << row.call << "\n" << answer;
  }
}

TEST(Acp, FilesAreReadAndWrittenForItWithinTheFolder) {
  Fake fake("acp-files");
  ASSERT_TRUE(write_file_atomic(fake.turn.cwd / "lines", "one\ntwo\nthree\n"));
  const TurnResult done = acp(fake, kOpen + R"(*'"session/prompt"'*) echo '{"jsonrpc":"2.0","id":10,"method":"fs/read_text_file","params":{"path":"'$PWD'/lines","line":2,"limit":1}}'
echo '{"jsonrpc":"2.0","id":11,"method":"fs/write_text_file","params":{"path":"'$PWD'/deep/new","content":"text"}}'
echo '{"jsonrpc":"2.0","id":12,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}'
echo '{"jsonrpc":"2.0","id":13,"method":"fs/write_text_file","params":{"path":"'$PWD'/../../out","content":"text"}}'
echo '{"jsonrpc":"2.0","id":14,"method":"fs/read_text_file","params":{"path":"'$PWD'/absent"}}'
echo '{"jsonrpc":"2.0","id":15,"method":"fs/read_text_file","params":{"path":7}}';;
*'"id":15'*) echo "$line" >> answers; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}';;
*) echo "$line" >> answers;;)");
  EXPECT_EQ(done.end, TurnEnd::finished) << done.reason;
  const std::string answers = *read_file(fake.turn.cwd / "answers");
  EXPECT_NE(answers.find(R"("result":{"content":"two\n"})"), std::string::npos) << answers;
  EXPECT_EQ(*read_file(fake.turn.cwd / "deep/new"), "text");
  EXPECT_FALSE(fs::exists(fake.folder / "out") || fs::exists(fake.folder.parent_path() / "out"));
  EXPECT_EQ(answers.find("root:"), std::string::npos) << answers;
  EXPECT_NE(fake.said(EventKind::permission).find("/etc/passwd lies outside"), std::string::npos);
  EXPECT_NE(answers.find("-32002"), std::string::npos) << "a missing file has a code of its own: " << answers;
}

TEST(Acp, OtherTriesAreToldAndNoLife) {
  for (const std::string name : {"session/retrying", "_session/retrying"}) {
    Fake fake("acp-retry");
    fake.turn.limits.silence_s = 1.5;
    const TurnResult done = acp(fake, kOpen + R"(*'"session/prompt"'*) while sleep 0.3; do echo '{"jsonrpc":"2.0","method":")" + name +
                                          R"(","params":{"category":"server_error","detail":"HTTP 500"}}'; done;;)");
    EXPECT_EQ(done.end, TurnEnd::silent) << done.reason;
    EXPECT_NE(fake.said(EventKind::retry).find("server_error HTTP 500"), std::string::npos);
  }
}

TEST(Acp, UpdatesMayComeBeforeTheSessionAndAfterTheCancel) {
  Fake fake("acp-early");
  const TurnResult done = acp(fake, R"(*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}';;
*'"session/new"'*) echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}'
echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"early"}}}}'
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}';;
*'"session/prompt"'*) echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0}}}';;)");
  EXPECT_EQ(done.end, TurnEnd::finished) << done.reason;
  EXPECT_EQ(done.last_text, "early");
  EXPECT_FALSE(done.usage.input_tokens) << "a turn that takes nothing is one of which nothing is known";
}

TEST(Acp, OneThatMindsNoCancelIsEnded) {
  Fake fake("acp-deaf");
  fake.turn.limits.wall_s = 1;
  const TurnResult done = acp(fake, kOpen + R"(*'"session/cancel"'*) echo "$line" > asked;;)");
  EXPECT_EQ(done.end, TurnEnd::overtime);
  EXPECT_TRUE(fs::exists(fake.turn.cwd / "asked")) << "it is asked before it is ended";
}

TEST(Acp, AnotherVersionIsRefused) {
  Fake fake("acp-version");
  const TurnResult done = acp(fake, R"(*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}';;)");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_NE(done.reason.find("version 2"), std::string::npos) << done.reason;
}

TEST(Acp, OneThatAsksAndDoesNotReadIsEnded) {
  Fake fake("acp-greedy");
  ASSERT_TRUE(write_file_atomic(fake.turn.cwd / "big", std::string(std::size_t{7} << 20, 'x')));
  const TurnResult done = acp(fake, kOpen + R"(*'"session/prompt"'*) for i in $(seq 1000); do echo '{"jsonrpc":"2.0","id":'$i'0,"method":"fs/read_text_file","params":{"path":"big"}}'; done; exec sleep 100;;)");
  EXPECT_EQ(done.end, TurnEnd::failed) << done.reason;
  EXPECT_NE(done.reason.find("does not read"), std::string::npos) << done.reason;
}

TEST(Acp, NoAnswerIsSilence) {
  Fake fake("acp-silent");
  fake.turn.limits.silence_s = 1;
  EXPECT_EQ(acp(fake, "nothing) true;;").end, TurnEnd::silent);
}

}  // namespace
}  // namespace hone
