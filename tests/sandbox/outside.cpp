// A stand-in for hone that tests can run in a crippled environment or kill: outside LIBEXEC VERB ...
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>

#include "sandbox/sandbox.h"

namespace {

// EPERM for clone and unshare that ask for a user namespace, as container runtimes do.
bool deny_user_namespaces() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_unshare},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args)},
      {BPF_JMP | BPF_JSET | BPF_K, 0, 1, CLONE_NEWUSER},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter = {sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

int report(const hone::Sandbox& sandbox, const std::string& marker_folder, const std::string& inside) {
  const hone::SandboxStatus& status = sandbox.status();
  std::printf("available: %d\nrefused: %s\nreason: %s\nhint: %s\n", status.available, status.refused.c_str(),
              status.reason.c_str(), status.hint.c_str());
  hone::JailSpec spec;
  spec.argv = {"/jail/inside", "write", "/marker/file"};
  spec.mounts = {{inside, "/jail/inside"}, {marker_folder, "/marker", true}};
  const auto outcome = sandbox.run(spec);
  if (outcome)
    std::printf("ran: exit %d\n%s", outcome->exit_code, outcome->out.c_str());
  else
    std::printf("%s\n", hone::to_text(outcome.error()).c_str());
  return outcome ? 0 : hone::exit_code_of(outcome.error().kind);
}

// Starts a stubborn program with an orphan beside it, says their pid and waits to be killed.
int hold(const hone::Sandbox& sandbox, const std::string& inside) {
  hone::JailSpec spec;
  spec.argv = {"/jail/inside", "stubborn"};
  spec.mounts = {{inside, "/jail/inside"}};
  const auto process = sandbox.start(spec, {});
  if (!process) {
    std::printf("%s\n", hone::to_text(process.error()).c_str());
    return 1;
  }
  while ((*process)->output().find("ready") == std::string::npos) usleep(1000);
  std::printf("%d\n", (*process)->pid());
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string libexec = argv[1], verb = argv[2], inside = argv[3], folder = argv[4];
  if (verb == "filtered" && !deny_user_namespaces()) return 77;
  const auto sandbox = hone::Sandbox::create(
      verb == "off" || verb == "hold-off" ? hone::SandboxMode::off : hone::SandboxMode::on, libexec);
  if (!sandbox) return 78;
  return verb.starts_with("hold") ? hold(*sandbox, inside) : report(*sandbox, folder, inside);
}
