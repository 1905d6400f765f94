// What the launcher knows itself: how a program ended, what it left, and which limit it met.
#include <signal.h>

#include <thread>

#include "fake.h"

namespace hone {
namespace {

using testing::Fake;

TEST(Command, ReadsThePromptAndEnds) {
  Fake fake("reads");
  const TurnResult done = fake.command("cat > got; pwd; echo last");
  EXPECT_EQ(done.end, TurnEnd::finished);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.last_text, "last");
  EXPECT_EQ(*read_file(fake.turn.cwd / "got"), "the prompt\n");
  EXPECT_NE(fake.said(EventKind::text).find(fs::canonical(fake.turn.cwd).string()), std::string::npos);
  EXPECT_NE(read_file(fake.turn.log)->find("last"), std::string::npos);
  EXPECT_FALSE(done.usage.input_tokens || done.usage.cost_usd) << "unknown, not nought";
}

TEST(Command, TakesThePromptAsAFile) {
  Fake fake("file");
  EXPECT_EQ(fake.run("command:" + fake.program("agent", "cat \"$2\"; cat").string() + " --prompt {prompt}").last_text, "the prompt");
}

TEST(Command, ItsExitCodeAndLastWordsAreTheReason) {
  Fake fake("exit");
  const TurnResult done = fake.command("echo first >&2; echo no key >&2; exit 3");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(done.reason, "exit 3: no key");
}

TEST(Command, ASignalIsSaid) {
  Fake fake("signal");
  const TurnResult done = fake.command("kill -SEGV $$");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_EQ(done.signal, SIGSEGV);
  EXPECT_NE(done.reason.find("signal 11"), std::string::npos);
}

TEST(Command, SeesNothingOfTheLaunchersEnvironment) {
  ::setenv("HONE_TEST_SECRET", "do-not-tell", 1);
  Fake fake("env");
  fake.turn.env.emplace_back("GIVEN=yes");
  fake.command("env");
  const std::string seen = fake.said(EventKind::text);
  EXPECT_EQ(seen.find("do-not-tell"), std::string::npos);
  EXPECT_NE(seen.find("GIVEN=yes"), std::string::npos);
}

TEST(Command, WhatOutlivesItIsEnded) {
  Fake fake("left");
  const TurnResult done = fake.command("setsid bash -c 'trap \"\" INT TERM HUP; while :; do sleep 0.1; touch alive; done' & disown; sleep 0.3");
  EXPECT_EQ(done.end, TurnEnd::finished);
  EXPECT_GE(done.left_behind, 1);
  fs::remove(fake.turn.cwd / "alive");
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_FALSE(fs::exists(fake.turn.cwd / "alive"));
}

TEST(Command, OneThatIgnoresSignalsIsEndedAllTheSame) {
  Fake fake("stubborn");
  fake.turn.limits.wall_s = 0.5;
  const TurnResult done = fake.command("trap 'echo got INT' INT; trap 'echo got TERM' TERM; while :; do sleep 0.05; done");
  EXPECT_EQ(done.end, TurnEnd::overtime);
  EXPECT_EQ(done.signal, SIGKILL);
  EXPECT_NE(fake.said(EventKind::text).find("got INT\n|got TERM"), std::string::npos) << fake.said(EventKind::text);
}

TEST(Command, SilenceIsNoOutputAndNoCpuAndNoQueue) {
  Fake quiet("quiet");
  quiet.turn.limits.silence_s = 1;
  EXPECT_EQ(quiet.command("sleep 60").end, TurnEnd::silent);
  Fake busy("busy");
  busy.turn.limits = {.wall_s = 4, .silence_s = 1, .stop_s = 0.3};
  EXPECT_EQ(busy.command("while :; do :; done").end, TurnEnd::overtime);
  Fake queued("queued");
  queued.turn.limits = {.wall_s = 4, .silence_s = 1, .stop_s = 0.3};
  queued.turn.busy = [] { return true; };
  EXPECT_EQ(queued.command("sleep 60").end, TurnEnd::overtime);
}

TEST(Command, AFloodIsEnded) {
  Fake fake("flood");
  fake.turn.limits.output_bytes = 1 << 20;
  const TurnResult done = fake.command("yes something");
  EXPECT_EQ(done.end, TurnEnd::flooded);
  EXPECT_NE(done.reason.find("1.0 MiB"), std::string::npos) << done.reason;
}

TEST(Command, ALineBeyondTheLimitEndsTheTurn) {
  Fake fake("line");
  fake.turn.limits.line_bytes = 1000;
  const TurnResult done = fake.command("echo before; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after; sleep 60");
  EXPECT_EQ(done.end, TurnEnd::failed);
  EXPECT_EQ(done.reason.find("line_too_long"), 0u) << done.reason;
  EXPECT_NE(done.reason.find("1000 B"), std::string::npos) << done.reason;
  EXPECT_EQ(done.last_text, "before");
}

TEST(Command, WhatIsNoUtf8IsLeftOut) {
  Fake fake("utf");
  EXPECT_EQ(fake.command("printf 'bad \\xff\\xfe utf\\n'").last_text, "bad  utf");
}

TEST(Command, CancelledIsCancelled) {
  Fake fake("cancel");
  std::atomic<bool> cancel = false;
  fake.turn.cancel = &cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancel = true;
  });
  const TurnResult done = fake.command("exec sleep 60");
  later.join();
  EXPECT_EQ(done.end, TurnEnd::cancelled);
  EXPECT_EQ(done.signal, SIGINT);
}

TEST(Command, ConfinedItWritesOnlyWhereItMay) {
  Fake fake("confined");
  fake.turn.confined = true;
  fake.turn.writable = {fake.turn.cwd};
  ASSERT_TRUE(write_file_atomic(fake.folder / "secret", "hidden words"));
  fs::create_directories(fake.folder / "sibling");
  ASSERT_TRUE(write_file_atomic(fake.folder / "sibling/run", "a sibling's"));
  fake.turn.hidden = {fake.folder / "secret", fake.folder / "sibling"};
  fake.turn.env.emplace_back("TMPDIR=" + (fake.folder / "work").string());
  TurnResult done;
  try {
    done = fake.command("echo x > mine && echo wrote mine; cat ../secret; ls ../sibling | wc -l; echo x > ../outside || echo refused; echo x > ../secret; true");
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(done.end, TurnEnd::finished);
  const std::string said = fake.said(EventKind::text);
  EXPECT_NE(said.find("wrote mine"), std::string::npos) << said << *read_file(fake.turn.log);
  EXPECT_NE(said.find("|0\n"), std::string::npos) << said;
  EXPECT_NE(said.find("refused"), std::string::npos) << said;
  EXPECT_EQ(said.find("hidden words"), std::string::npos);
  EXPECT_EQ(*read_file(fake.folder / "secret"), "hidden words");
  EXPECT_FALSE(fs::exists(fake.folder / "outside"));
}

// As root too, which could else mount, unmount, write the kernel's settings and the machine's disks.
TEST(Command, ConfinedItCannotUndoIt) {
  Fake fake("confined-tries");
  fake.turn.confined = true;
  fake.turn.writable = {fake.turn.cwd};
  fs::create_directories(fake.folder / "sibling");
  ASSERT_TRUE(write_file_atomic(fake.folder / "sibling/run", "a sibling's"));
  fake.turn.hidden = {fake.folder / "sibling"};
  fake.turn.env.emplace_back("TMPDIR=" + (fake.folder / "work").string());
  std::string said;
  try {
    fake.command(R"(mount -o remount,rw / && echo undone: remount
umount "$PWD/../sibling" && echo undone: unmount
unshare -Urm bash -c 'mount -o remount,bind,rw / && echo undone: remount within; umount ../sibling && cat ../sibling/run && echo undone: unmount within'
mknod disk b 8 0 && echo undone: device
echo x > /proc/sys/kernel/core_pattern && echo undone: setting
ls /proc/1/root/ && echo undone: the root of the first process
nsenter -t 1 -m true && echo undone: namespaces
chmod 666 /dev/null && echo undone: a mode of the machine
for device in /dev/sd* /dev/vd* /dev/nvme* /dev/mem /dev/kmsg; do [ -e $device ] && echo undone: $device; done
grep NoNewPrivs /proc/self/status
echo x > /dev/null && echo null works
echo x > /dev/shm/x && echo shm works)");
    said = fake.said(EventKind::text);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(said.find("undone"), std::string::npos) << said;
  EXPECT_NE(said.find("NoNewPrivs:\t1"), std::string::npos) << said;
  EXPECT_NE(said.find("null works"), std::string::npos) << said;
  EXPECT_NE(said.find("shm works"), std::string::npos) << said;
}

}  // namespace
}  // namespace hone
