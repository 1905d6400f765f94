#include "fake.h"

namespace hone {
namespace {

TEST(Spec, ModelAndEffortMayBeLeftOut) {
  struct Row {
    std::string text, kind, model, effort, program, name;
  };
  for (const Row& row : {Row{"claude", "claude", "", "", "", "claude"}, Row{"claude/opus", "claude", "opus", "", "", "claude/opus"},
                         Row{"codex/gpt-5.1:high", "codex", "gpt-5.1", "high", "", "codex/gpt-5.1:high"}, Row{"codex:low", "codex", "", "low", "", "codex:low"},
                         Row{"command:/bin/agent --x y", "command", "", "", "/bin/agent --x y", "command:agent"},
                         Row{"acp:vibe-acp", "acp", "", "", "vibe-acp", "acp:vibe-acp"}}) {
    const auto spec = parse_agent_spec(row.text);
    ASSERT_TRUE(spec) << row.text;
    EXPECT_EQ(spec->kind, row.kind);
    EXPECT_EQ(spec->model, row.model);
    EXPECT_EQ(spec->effort, row.effort);
    EXPECT_EQ(spec->program, row.program);
    EXPECT_EQ(spec->name, row.name);
    EXPECT_EQ(spec->text, row.text);
  }
}

TEST(Spec, TheNameHoldsNoArguments) { EXPECT_EQ(parse_agent_spec("acp:/usr/bin/env KEY=secret vibe-acp")->name, "acp:env"); }

TEST(Spec, WhatIsWrongIsSaidWithoutSecrets) {
  struct Row {
    std::string text, part;
  };
  for (const Row& row : {Row{"cluade/opus", "did you mean claude?"}, Row{"command", "command:/path"}, Row{"acp:", "acp:/path"}, Row{"claude/", "MODEL"},
                         Row{"claude/--dangerous", "MODEL"}, Row{"codex/m:", "high"}, Row{"", "claude/MODEL"}}) {
    const auto spec = parse_agent_spec(row.text);
    ASSERT_FALSE(spec) << row.text;
    EXPECT_EQ(spec.error().kind, ErrorKind::usage);
    EXPECT_NE(to_text(spec.error()).find(row.part), std::string::npos) << to_text(spec.error());
  }
  EXPECT_EQ(to_text(parse_agent_spec("agent KEY=secret").error()).find("secret"), std::string::npos);
}

TEST(Spec, AProgramThatIsNotThereIsAnEnvironmentError) {
  testing::Fake fake("absent");
  const auto done = (*make_driver(*parse_agent_spec("command:no-such-agent")))->run(fake.turn);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::environment);
  EXPECT_NE(to_text(done.error()).find("no-such-agent"), std::string::npos);
}

}  // namespace
}  // namespace hone
