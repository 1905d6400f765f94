// hone-keeper itself: with a PID namespace and where the machine refuses one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

#include "testing/testing.h"

namespace hone {
namespace {

// From here on this process and what it starts get no namespaces.
void refuse_namespaces() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program = {4, code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(99);
}

struct Keeper : ::testing::TestWithParam<bool> {
  fs::path folder = testing::scratch("driver-keeper");
  int status[2] = {-1, -1};

  void SetUp() override { ASSERT_EQ(::pipe2(status, O_CLOEXEC), 0); }
  void TearDown() override { ::close(status[0]); }

  // In a child: becomes the keeper of a shell script.
  [[noreturn]] void become(const std::string& script, const std::vector<std::string>& flags = {}) {
    ::dup2(status[1], 3);
    if (!GetParam()) refuse_namespaces();
    std::vector<std::string> words = {(share_dir().value() / "libexec/hone-keeper").string(), "3"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "/bin/bash", "-c", script});
    std::vector<char*> argv;
    for (std::string& each : words) argv.push_back(each.data());
    argv.push_back(nullptr);
    if (::chdir(folder.c_str()) == 0) ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  // What it told until it ended.
  std::string told() {
    ::close(status[1]);
    std::string out;
    char buffer[512];
    for (ssize_t n = 0; (n = ::read(status[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
    return out;
  }
  bool appears(const char* name, bool expected = true) const {
    for (int i = 0; i < 250 && fs::exists(folder / name) != expected; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return fs::exists(folder / name);
  }
  // Whether somebody still touches the file.
  bool alive() const {
    fs::remove(folder / "alive");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return fs::exists(folder / "alive");
  }
};
// Forked twice, in a session of its own, deaf to signals.
const char* const kOrphan = "(setsid bash -c 'trap \"\" INT TERM HUP; while :; do sleep 0.05; touch alive; done' & ) ; while [ ! -e alive ]; do sleep 0.05; done; ";

TEST_P(Keeper, EndsOrphansWithTheProgram) {
  const pid_t pid = ::fork();
  if (pid == 0) become(std::string(kOrphan) + "exit 7");
  const std::string said = told();
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(said.starts_with(GetParam() ? "namespace\n" : "subreaper: "), true) << said;
  EXPECT_NE(said.find("ended exit 7 left "), std::string::npos) << said;
  EXPECT_EQ(said.find("left 0"), std::string::npos) << said;
  EXPECT_FALSE(alive());
}

TEST_P(Keeper, EndsEverythingWhenTheLauncherIsKilled) {
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const pid_t keeper = ::fork();
    if (keeper == 0) become(std::string(kOrphan) + "touch ready; exec sleep 1000");
    ::waitpid(keeper, nullptr, 0);
    ::_exit(0);
  }
  ASSERT_TRUE(appears("ready"));
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  told();   // the end of the pipe: the keeper is gone
  bool left = alive();
  for (int i = 0; i < 10 && left; ++i) left = alive();
  EXPECT_FALSE(left);
}

TEST_P(Keeper, AllAtOnceOnDemand) {
  const pid_t pid = ::fork();
  if (pid == 0) become(std::string(kOrphan) + "trap '' INT TERM; touch ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(appears("ready"));
  ::kill(pid, SIGUSR1);
  EXPECT_NE(told().find("ended signal 9"), std::string::npos);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(alive());
}

TEST_P(Keeper, ConfinementIsNeverLeftOut) {
  if (GetParam()) return;
  const pid_t pid = ::fork();
  if (pid == 0) become("touch ran", {"--confined"});
  EXPECT_EQ(told().find("error confined: no namespaces"), 0u);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(fs::exists(folder / "ran"));
}

INSTANTIATE_TEST_SUITE_P(, Keeper, ::testing::Bool(), [](const auto& which) { return which.param ? "Namespace" : "Subreaper"; });

}  // namespace
}  // namespace hone
