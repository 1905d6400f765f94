#include <signal.h>

#include "jail_fixture.h"
#include "sandbox/syscalls.h"

namespace hone {
namespace {

class Lockdown : public JailTest {};

TEST_F(Lockdown, AllThreadsLoseWhatTheyHad) {
  for (const auto& [call, name] : std::vector<std::pair<std::string, std::string>>{{"fork", "clone"},
                                                                                   {"exec", "execve"},
                                                                                   {"open", "openat"},
                                                                                   {"sigaction", "rt_sigaction"},
                                                                                   {"prctl", "prctl"},
                                                                                   {"affinity", "sched_setaffinity"},
                                                                                   {"socket", "socket"},
                                                                                   {"kill-init", "kill"},
                                                                                   {"unlink", "unlink"},
                                                                                   {"ftruncate", "ftruncate"},
                                                                                   {"raise-limit", "prlimit64"},
                                                                                   {"memfd", "memfd_create"},
                                                                                   {"unknown", "system call 9999"}}) {
    const std::string said = say({"locked", call}, SyscallPolicy::compute);
    ASSERT_TRUE(said.starts_with("trapped ")) << call << ": " << said;
    EXPECT_EQ(syscall_name(std::stoi(said.substr(8))), name) << call;
  }
}

TEST_F(Lockdown, NoNewThreads) {
  const ProcessOutcome outcome = run(inside({"locked", "thread"}, SyscallPolicy::compute));
  EXPECT_EQ(outcome.out.find("ok"), std::string::npos);
  EXPECT_TRUE(outcome.signal == SIGSYS || outcome.out.starts_with("trapped "))
      << outcome.out;   // pthread_create blocks signals
}

TEST_F(Lockdown, MemoryStillWorks) { EXPECT_EQ(say({"locked", "memory"}, SyscallPolicy::compute), "ok\n"); }

TEST_F(Lockdown, AbortStillEnds) { EXPECT_EQ(run(inside({"locked-abort"}, SyscallPolicy::compute)).signal, SIGABRT); }

TEST_F(Lockdown, WorksWithoutAJail) {
  ProcessSpec spec;
  spec.argv = {SANDBOX_INSIDE, "locked", "open"};
  const auto outcome = run_process(spec);
  HONE_ASSERT_OK(outcome);
  EXPECT_TRUE(outcome->out.starts_with("trapped ")) << outcome->out;
}

TEST(SyscallName, KnowsAnyNumber) {
  EXPECT_EQ(syscall_name(0).empty(), false);
  EXPECT_EQ(syscall_name(-1), "system call -1");
  EXPECT_EQ(syscall_name(-101), "system call -101");
  EXPECT_EQ(syscall_name(1 << 30), "system call 1073741824");
}

}  // namespace
}  // namespace hone
