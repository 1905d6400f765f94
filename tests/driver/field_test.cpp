// Faults that people met with agent programs, at the driver; tests/flow/field_cases.py has them whole.
#include <sys/resource.h>

#include <thread>

#include "fake.h"

namespace hone {
namespace {

using testing::Fake;

fs::path source(const std::string& below) { return testing::source_dir() / "tests" / below; }

std::uint64_t most_memory() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

// C27: it says that it is finished and stays; a child of it keeps its output open.
TEST(Field, AProgramThatStaysAfterItsResultIsEnded) {
  Fake fake("lingering");
  fake.turn.limits = {.wall_s = 60, .silence_s = 60};   // and the usual time between signals
  fs::create_symlink(source("flow/agents/lingering_claude.sh"), fake.folder / "bin/claude");
  const TurnResult done = fake.run("claude");
  EXPECT_EQ(done.end, TurnEnd::finished) << done.reason;
  EXPECT_EQ(done.usage.cost_usd, 0.42);
  EXPECT_LT(done.wall_s, 10);
  EXPECT_GE(done.left_behind, 1) << "the sleeper that held standard output";
}

// C29: it reads its standard input to the end before anything else.
TEST(Field, StandardInputEnds) {
  Fake codex("reading");
  fs::create_symlink(source("flow/agents/reading_codex.sh"), codex.folder / "bin/codex");
  EXPECT_EQ(codex.run("codex").end, TurnEnd::finished);
  EXPECT_NE(codex.said(EventKind::started).find("end of file"), std::string::npos) << "the trace tells how it was set";
  Fake claude("reading-claude");
  claude.program("claude", R"(cat > /dev/null; echo '{"type":"result","subtype":"success","is_error":false}')");
  EXPECT_EQ(claude.run("claude").end, TurnEnd::finished);
  Fake command("reading-file");
  EXPECT_EQ(command.run("command:" + command.program("agent", "cat; cat \"$1\"").string() + " {prompt}").last_text, "the prompt") << "read from the file, nothing from the input";
}

// C30: cancelled, it says that it ended well and used nothing.
TEST(Field, ACancelledTurnIsCancelledAndItsUseUnknown) {
  Fake fake("cancelled");
  std::atomic<bool> cancel = false;
  fake.turn.cancel = &cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    cancel = true;
  });
  const TurnResult done = fake.run("acp:" + source("flow/agents/cancelled_acp.py").string());
  later.join();
  EXPECT_EQ(done.end, TurnEnd::cancelled) << done.reason;
  EXPECT_FALSE(done.usage.input_tokens || done.usage.output_tokens || done.usage.cached_tokens);
  EXPECT_EQ(done.last_text, "working");
}

// C32: one line of 5 MiB is a line; one without an end is none.
TEST(Field, ALongLineIsReadWhole) {
  Fake fake("long");
  fake.program("claude", "cat > /dev/null; exec " + source("driver/long_line.py").string() + " long");
  const TurnResult done = fake.run("claude");
  EXPECT_EQ(done.end, TurnEnd::finished) << done.reason;
  EXPECT_EQ(done.usage.cost_usd, 0.01);
  const std::string said = fake.said(EventKind::tool_result);
  EXPECT_EQ(said.find("|€€€"), 0u) << "a damaged line would be no JSON";
  EXPECT_NE(said.find("more bytes"), std::string::npos);
}

TEST(Field, ALineWithoutEndIsAFailureByName) {
  for (const std::string kind : {"claude", "codex", "acp", "command"}) {
    Fake fake("endless-" + kind);
    const std::uint64_t before = most_memory();
    const fs::path program = fake.program(kind == "acp" || kind == "command" ? "agent" : kind, source("driver/long_line.py").string() + " endless & exec sleep 1000");
    const TurnResult done = fake.run(kind == "acp" || kind == "command" ? kind + ":" + program.string() : kind);
    EXPECT_EQ(done.end, TurnEnd::failed) << kind;
    EXPECT_NE(done.reason.find("line_too_long"), std::string::npos) << done.reason;
    EXPECT_NE(done.reason.find("16.0 MiB"), std::string::npos) << done.reason;
    EXPECT_LT(most_memory() - before, std::uint64_t{100} << 20) << kind;
    EXPECT_LE(fs::file_size(fake.turn.log), std::uint64_t{65} << 20);
  }
}

TEST(Field, CancelledWhileAToolRunsNothingIsLeft) {
  // A tool's shell has a session and a group of its own and minds no signal.
  const std::string tool = "setsid bash -c 'trap \"\" INT TERM HUP; while :; do sleep 0.05; touch alive; done' & ";
  for (const std::string kind : {"claude", "codex"}) {
    Fake fake("tool-" + kind);
    std::atomic<bool> cancel = false;
    fake.turn.cancel = &cancel;
    fake.program(kind, R"(cat > /dev/null; echo '{"type":"thread.started","thread_id":"t"}'; )" + tool + "wait");
    std::thread later([&] {
      for (int i = 0; i < 200 && !fs::exists(fake.turn.cwd / "alive"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      cancel = true;
    });
    const TurnResult done = fake.run(kind);
    later.join();
    EXPECT_EQ(done.end, TurnEnd::cancelled) << kind;
    EXPECT_GE(done.left_behind, 1) << kind;
    fs::remove(fake.turn.cwd / "alive");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(fs::exists(fake.turn.cwd / "alive")) << kind;
  }
}

}  // namespace
}  // namespace hone
