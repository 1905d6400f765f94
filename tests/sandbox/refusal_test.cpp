// What happens where the machine refuses, and when the caller dies.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "jail_fixture.h"

namespace hone {
namespace {

std::vector<std::string> stand_in(const std::string& verb, const fs::path& folder) {
  return {SANDBOX_OUTSIDE, libexec().string(), verb, SANDBOX_INSIDE, folder.string()};
}

ProcessOutcome run_outside(const std::vector<std::string>& argv) {
  ProcessSpec spec;
  spec.argv = argv;
  spec.env = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  auto outcome = run_process(spec);
  EXPECT_TRUE(outcome.has_value());
  return outcome.value_or(ProcessOutcome{});
}

void expect_refused(const ProcessOutcome& outcome, const fs::path& folder) {
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("available: 0\nrefused: user namespaces\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("error(sandbox_unavailable)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("--sandbox=off"), std::string::npos) << outcome.out;
  EXPECT_TRUE(fs::is_empty(folder));   // nothing ran
}

// C22, first half.
TEST(Refusal, NoUserNamespacesLeft) {
  const fs::path folder = hone::testing::scratch("limit");
  const ProcessOutcome tried =
      run_outside({"/usr/bin/unshare", "-Ur", "/bin/sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces"});
  if (!tried.ok()) {
    GTEST_SKIP() << "cannot set max_user_namespaces in a namespace: " << tried.err;
  }
  std::vector<std::string> argv = {
      "/usr/bin/unshare", "-Ur", "/bin/sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"", "sh"};
  for (const std::string& each : stand_in("on", folder)) argv.push_back(each);
  const ProcessOutcome outcome = run_outside(argv);
  expect_refused(outcome, folder);
  EXPECT_NE(outcome.out.find("max_user_namespaces"), std::string::npos) << outcome.out;
}

// C22, second half.
TEST(Refusal, AFilterForbidsUserNamespaces) {
  const fs::path folder = hone::testing::scratch("filter");
  expect_refused(run_outside(stand_in("filtered", folder)), folder);
}

TEST(Refusal, OffRunsWhereTheSandboxCannot) {
  const fs::path folder = hone::testing::scratch("off");
  const ProcessOutcome outcome = run_outside(stand_in("off", folder));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(fs::exists(folder / "file"));
}

TEST(Refusal, MissingJailIsNamed) {
  const auto sandbox = Sandbox::create(SandboxMode::on, "/nowhere");
  HONE_EXPECT_ERROR(sandbox, environment);
  EXPECT_NE(sandbox.error().message.find("/nowhere/hone-jail"), std::string::npos);
  EXPECT_FALSE(sandbox.error().hint.empty());
}

TEST(Refusal, AJailThatSaysNothingFailsClosed) {
  const fs::path folder = hone::testing::scratch("fake");
  fs::create_symlink("/bin/true", folder / "hone-jail");
  const auto sandbox = Sandbox::create(SandboxMode::on, folder);
  HONE_ASSERT_OK(sandbox);
  EXPECT_FALSE(sandbox->status().available);
  EXPECT_NE(sandbox->status().hint.find("--sandbox=off"), std::string::npos);
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

class CallerDies : public ::testing::TestWithParam<const char*> {};

TEST_P(CallerDies, AndSoDoesTheJail) {
  const fs::path folder = hone::testing::scratch("caller");
  const std::vector<std::string> arguments = stand_in(GetParam(), folder);
  std::vector<char*> argv;
  for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
  argv.push_back(nullptr);
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  pid_t caller = -1;
  ASSERT_EQ(::posix_spawn(&caller, SANDBOX_OUTSIDE, &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(fds[1]);
  char text[256] = {};
  const ssize_t n = ::read(fds[0], text, sizeof text - 1);
  ::close(fds[0]);
  const pid_t program = n > 0 ? std::atoi(text) : 0;
  ::kill(caller, SIGKILL);
  ::waitpid(caller, nullptr, 0);
  if (program <= 0) {
    GTEST_SKIP() << text;
  }
  for (const double start = now_s(); exists(program) && now_s() - start < 20;) ::usleep(1000);
  EXPECT_FALSE(exists(program)) << program;
}

INSTANTIATE_TEST_SUITE_P(Modes, CallerDies, ::testing::Values("hold", "hold-off"),
                         [](const auto& each) { return each.param == std::string("hold") ? "on" : "off"; });

}  // namespace
}  // namespace hone
