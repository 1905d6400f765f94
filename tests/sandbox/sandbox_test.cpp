#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "jail_fixture.h"

namespace hone {
namespace {

class Jail : public JailTest {};

// This process has no child left: every jail was reaped.
void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Jail, SaysWhatThereIs) {
  EXPECT_TRUE(sandbox_->status().available);
  EXPECT_EQ(sandbox_->status().refused, "");
}

TEST_F(Jail, ExitCodesSignalsAndStreams) {
  EXPECT_EQ(run(inside({"exit", "7"})).exit_code, 7);
  const ProcessOutcome crash = run(inside({"crash"}, SyscallPolicy::compute));
  EXPECT_EQ(crash.signal, SIGSEGV);
  EXPECT_EQ(crash.exit_code, -1);
  JailSpec spec;
  spec.argv = {"/bin/sh", "-c", "echo out; echo err >&2"};
  const ProcessOutcome streams = run(spec);
  EXPECT_EQ(streams.out, "out\n");
  EXPECT_EQ(streams.err, "err\n");
  expect_no_children();
}

TEST_F(Jail, ArgumentsEnvironmentFolderAndInput) {
  EXPECT_EQ(say({"arguments", "", "a b", "\xff\n"}), "/jail/inside\narguments\n\na b\n\xff\n\n");
  JailSpec spec = inside({"facts"});
  spec.env = {"A=1", "B=two words"};
  spec.cwd = "/tmp";
  const std::string facts = run(spec).out;
  EXPECT_NE(facts.find("env A=1\nenv B=two words\ncwd /tmp\n"), std::string::npos) << facts;
  spec = inside({"stdin"}, SyscallPolicy::compute);
  EXPECT_EQ(run(spec).out, "0\n");
  spec.stdin_text.assign(300000, 'x');
  EXPECT_EQ(run(spec).out, "300000\n");
}

TEST_F(Jail, CompilersWork) {
  const fs::path folder = hone::testing::scratch("compile");
  ASSERT_TRUE(
      write_file_atomic(folder / "a.cpp",
                        "#include <vector>\nint main() { return static_cast<int>(std::vector<int>(3).size()); }\n")
          .has_value());
  for (const char* compiler : {"/usr/bin/g++", "/usr/bin/clang++"}) {
    if (::access(compiler, X_OK) != 0) continue;
    JailSpec spec;
    spec.argv = {compiler, "-O1", "-fPIC", "a.cpp", "-o", "a.out"};
    spec.env = {"PATH=/usr/bin:/bin", "TMPDIR=/tmp"};
    spec.mounts = {{folder, "/src", true}};
    spec.cwd = "/src";
    const ProcessOutcome outcome = run(spec);
    EXPECT_EQ(outcome.exit_code, 0) << compiler << outcome.err;
    spec.argv = {"/src/a.out"};
    spec.mounts[0].writable = false;
    spec.policy = SyscallPolicy::compute;
    EXPECT_EQ(run(spec).exit_code, 3) << compiler;
  }
}

TEST_F(Jail, ThreadsKnowTheCores) {
  const std::string cores = std::to_string(std::thread::hardware_concurrency());
  EXPECT_EQ(say({"workers"}, SyscallPolicy::compute), cores + " " + cores + "\n");
}

TEST_F(Jail, PrivateFoldersCanBeMounted) {
  const fs::path folder = hone::testing::scratch("private");
  ASSERT_TRUE(write_file_atomic(folder / "data", "x", 0644).has_value());
  fs::permissions(folder, fs::perms::owner_all);
  JailSpec spec = inside({"read", "/private/data"});
  spec.mounts.push_back({folder, "/private", false});
  EXPECT_EQ(run(spec).out, "ok\n");
}

TEST_F(Jail, TimeIsLimited) {
  for (const char* verb : {"spin", "stubborn"}) {
    JailSpec spec = inside({verb});
    spec.limits.wall_s = 0.3;
    const double start = now_s();
    const ProcessOutcome outcome = run(spec);
    EXPECT_TRUE(outcome.timed_out) << verb;
    EXPECT_EQ(outcome.signal, SIGKILL) << verb;
    EXPECT_LT(now_s() - start, 30);
  }
  JailSpec spec = inside({"spin"}, SyscallPolicy::compute);
  spec.limits.cpu_s = 1;
  const ProcessOutcome outcome = run(spec);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_TRUE(outcome.signal == SIGXCPU || outcome.signal == SIGKILL) << outcome.signal;
  expect_no_children();
}

TEST_F(Jail, Cancelled) {
  std::atomic<bool> cancel = false;
  JailSpec spec = inside({"stubborn"});
  spec.cancel = &cancel;
  std::thread later([&] {
    ::usleep(200000);
    cancel = true;
  });
  const ProcessOutcome outcome = run(spec);
  later.join();
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_EQ(outcome.signal, SIGKILL);
  HONE_EXPECT_ERROR(sandbox_->run(spec), cancelled);   // from the start
}

TEST_F(Jail, OutputIsBoundedAndCounted) {
  JailSpec spec = inside({"flood", std::to_string(4 << 20)});
  spec.limits.output_bytes = 10;
  const ProcessOutcome outcome = run(spec);
  EXPECT_FALSE(outcome.flooded);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "yyyyyyyyyy");
  EXPECT_EQ(outcome.out_dropped, (std::uint64_t{4} << 20) - 10);
}

TEST_F(Jail, FaultsOfTheSpecAreTyped) {
  JailSpec spec = inside({"exit", "0"});
  spec.mounts.push_back({"/no/such/folder", "/x"});
  HONE_EXPECT_ERROR(sandbox_->run(spec), io);
  spec = inside({"exit", "0"});
  spec.mounts.push_back({"/usr", "/usr/below"});
  HONE_EXPECT_ERROR(sandbox_->run(spec), io);
  spec = inside({"exit", "0"});
  spec.argv[0] = "/jail/missing";
  HONE_EXPECT_ERROR(sandbox_->run(spec), environment);
  spec = inside({"exit", "0"});
  spec.cwd = "/missing";
  HONE_EXPECT_ERROR(sandbox_->run(spec), environment);
  for (const char* place : {"relative", "/a/../b", "/", ""}) {
    spec = inside({"exit", "0"});
    spec.mounts.push_back({"/usr", place});
    HONE_EXPECT_ERROR(sandbox_->run(spec), internal);
  }
  spec.argv.clear();
  HONE_EXPECT_ERROR(sandbox_->run(spec), internal);
  expect_no_children();
}

TEST_F(Jail, DescriptorsAreHandedOnByNumber) {
  int fds[3][2];
  const char* words[] = {"zero", "one", "two"};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::pipe2(fds[i], O_CLOEXEC), 0);
    ASSERT_EQ(::write(fds[i][1], words[i], std::strlen(words[i])), static_cast<ssize_t>(std::strlen(words[i])));
    ::close(fds[i][1]);
  }
  // Targets that collide with hone-jail's own numbers, and with one another's sources.
  auto process = sandbox_->start(inside({"echo", "3", "4", "9"}, SyscallPolicy::compute),
                                 {{fds[0][0], 9}, {fds[1][0], 3}, {fds[2][0], 4}});
  HONE_ASSERT_OK(process);
  const ProcessOutcome outcome = (*process)->wait(30);
  EXPECT_EQ(outcome.out, "3=one\n4=two\n9=zero\n");
  for (auto& pair : fds) ::close(pair[0]);
  HONE_EXPECT_ERROR(sandbox_->start(inside({"exit", "0"}), {{0, 2}}), internal);
  auto closed = sandbox_->start(inside({"exit", "0"}), {{250, 3}});
  HONE_EXPECT_ERROR(closed, environment);
}

TEST_F(Jail, LongLivedProgram) {
  auto started = sandbox_->start(inside({"stubborn"}), {});
  HONE_ASSERT_OK(started);
  JailedProcess& process = **started;
  for (const double start = now_s(); process.output() != "ready\n" && now_s() - start < 30;) ::usleep(1000);
  EXPECT_EQ(process.output(), "ready\n");
  EXPECT_EQ(process.output_seen(), 6u);
  EXPECT_TRUE(process.running());
  const pid_t pid = process.pid();
  EXPECT_EQ(::kill(pid, 0), 0);
  process.kill();
  EXPECT_FALSE(process.running());
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(process.wait(0).signal, SIGKILL);
  EXPECT_FALSE(process.wait(0).timed_out);
  process.kill();
  expect_no_children();
}

TEST_F(Jail, WaitKillsAtTheEndOfTheTime) {
  auto process = sandbox_->start(inside({"orphan", "left"}), {});
  HONE_ASSERT_OK(process);
  EXPECT_EQ((*process)->wait(30).exit_code, 0);
  process = sandbox_->start(inside({"spin"}), {});
  HONE_ASSERT_OK(process);
  const ProcessOutcome outcome = (*process)->wait(0.1);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
}

TEST_F(Jail, DestructionEndsEverything) {
  pid_t pid = 0;
  {
    auto process = sandbox_->start(inside({"stubborn"}), {});
    HONE_ASSERT_OK(process);
    pid = (*process)->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  expect_no_children();
}

// The thread that starts a jail may end before it.
TEST_F(Jail, OutlivesTheThreadThatStartedIt) {
  Result<std::unique_ptr<JailedProcess>> process = fail(ErrorKind::internal, "not started");
  std::thread([&] { process = sandbox_->start(inside({"stubborn"}), {}); }).join();
  HONE_ASSERT_OK(process);
  ::usleep(100000);
  EXPECT_TRUE((*process)->running());
}

TEST_F(Jail, ManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const auto outcome = sandbox_->run(
            inside({"exit", std::to_string(t)}, i % 2 == 0 ? SyscallPolicy::compute : SyscallPolicy::tools));
        if (outcome && outcome->exit_code == t) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
  expect_no_children();
}

class JailOff : public ::testing::Test {
 protected:
  static Sandbox off() { return Sandbox::create(SandboxMode::off, libexec()).value(); }
};

TEST_F(JailOff, SamePathsSameLimits) {
  const fs::path folder = hone::testing::scratch("off");
  const Sandbox sandbox = off();
  EXPECT_TRUE(sandbox.status().available);
  JailSpec spec;
  spec.argv = {"/jail/inside", "fill", "/out/file"};
  spec.mounts = {{SANDBOX_INSIDE, "/jail/inside"}, {folder, "/out", true}};
  spec.limits.file_bytes = 1 << 20;
  auto outcome = sandbox.run(spec);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->out, "EFBIG after 1048576\n");
  EXPECT_EQ(fs::file_size(folder / "file"), 1u << 20);
  spec.argv = {"/jail/inside", "memory-bomb"};
  spec.limits.memory_bytes = std::uint64_t{256} << 20;
  outcome = sandbox.run(spec);
  HONE_ASSERT_OK(outcome);
  EXPECT_TRUE(outcome->out.starts_with("ENOMEM after ")) << outcome->out;
  spec.argv = {"/jail/inside", "facts"};
  spec.env = {"A=/out/x"};
  spec.cwd = "/out";
  outcome = sandbox.run(spec);
  HONE_ASSERT_OK(outcome);
  EXPECT_NE(outcome->out.find("env A=" + folder.string() + "/x\ncwd " + folder.string()), std::string::npos)
      << outcome->out;
  spec.argv = {"/jail/missing"};
  HONE_EXPECT_ERROR(sandbox.run(spec), environment);
}

TEST_F(JailOff, OrphansEndWithTheProgram) {
  JailSpec spec;
  spec.argv = {SANDBOX_INSIDE, "orphan", "left"};
  spec.limits.wall_s = 30;
  const auto outcome = off().run(spec);
  HONE_ASSERT_OK(outcome);
  EXPECT_EQ(outcome->exit_code, 0);
  EXPECT_FALSE(outcome->timed_out);
  spec.argv = {SANDBOX_INSIDE, "stubborn"};
  spec.limits.wall_s = 0.2;
  const auto late = off().run(spec);
  HONE_ASSERT_OK(late);
  EXPECT_TRUE(late->timed_out);
  expect_no_children();
}

}  // namespace
}  // namespace hone
