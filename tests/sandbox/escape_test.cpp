// Escapes, really tried. Each honest twin shows that the try itself works outside or was understood.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "jail_fixture.h"
#include "sandbox/syscalls.h"

namespace hone {
namespace {

class Escape : public JailTest {};

struct Listener {
  int fd;
  std::string address;   // port or abstract name
  ~Listener() { ::close(fd); }
};

Listener listen_tcp() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(::listen(fd, 1), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return {fd, std::to_string(ntohs(at.sin_port))};
}

Listener listen_abstract() {
  const std::string name = "hone-test-" + std::to_string(::getpid());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, name.data(), name.size());
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  EXPECT_EQ(::listen(fd, 1), 0);
  return {fd, name};
}

std::string outside(std::vector<std::string> arguments) {
  ProcessSpec spec;
  spec.argv = {SANDBOX_INSIDE};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  auto outcome = run_process(spec);
  return outcome ? outcome->out : to_text(outcome.error());
}

TEST_F(Escape, Network) {
  const Listener server = listen_tcp();
  EXPECT_EQ(outside({"tcp", server.address}), "ok\n");
  EXPECT_EQ(say({"tcp", server.address}), "refused: EPERM\n");
  EXPECT_EQ(run(inside({"tcp", server.address}, SyscallPolicy::compute)).signal, SIGSYS);
}

TEST_F(Escape, AbstractSockets) {
  const Listener server = listen_abstract();
  EXPECT_EQ(outside({"abstract", server.address}), "ok\n");
  EXPECT_EQ(say({"abstract", server.address}), "refused: EPERM\n");
}

TEST_F(Escape, FilesOfTheMachine) {
  const fs::path home = hone::testing::scratch("home");
  ASSERT_TRUE(write_file_atomic(home / "secret", "s").has_value());
  const std::string secret = (home / "secret").string();
  EXPECT_EQ(outside({"read", secret}), "ok\n");
  EXPECT_EQ(say({"read", secret}), "refused: ENOENT\n");
  for (const char* path : {"/etc/shadow", "/etc/passwd", "/root", "/home", "/proc/1/environ", "/proc/self/maps",
                           "/sys/class", "/dev/mem", "/dev/shm", "/var", "/run"})
    EXPECT_EQ(say({"read", path}), "refused: ENOENT\n") << path;
  const char* person = std::getenv("HOME");
  if (person != nullptr && std::strlen(person) > 1 && std::string_view(person) != "/tmp") {
    EXPECT_EQ(say({"read", person}), "refused: ENOENT\n");
  }
  const std::string root = say({"list", "/"});
  for (const char* folder : {"home\n", "root\n", "proc\n", "sys\n", "var\n", "run\n"})
    EXPECT_EQ(root.find(folder), std::string::npos) << root;
  EXPECT_EQ(say({"list", "/etc"}).find("ssl"), std::string::npos);
}

TEST_F(Escape, NothingOutsideCanBeWritten) {
  for (const char* path : {"/file", "/usr/file", "/usr/bin/file", "/etc/file", "/dev/file", "/jail/file", "/bin/true",
                           "/etc/ld.so.cache"}) {
    EXPECT_EQ(say({"write", path}), "refused: EROFS\n") << path;
  }
  EXPECT_EQ(say({"write", "/tmp/hone-jail-left-this"}), "ok\n");
  EXPECT_EQ(say({"write", "/dev/null"}), "ok\n");
  EXPECT_FALSE(fs::exists("/tmp/hone-jail-left-this"));
  EXPECT_EQ(say({"call", "chmod-null"}), "refused: EROFS\n");
}

TEST_F(Escape, MountsAreAsWritableAsAskedFor) {
  const fs::path folder = hone::testing::scratch("mounts");
  fs::create_directories(folder / "open/deep");
  fs::create_directories(folder / "shut");
  ASSERT_TRUE(write_file_atomic(folder / "open/deep/old", "old", 0600).has_value());
  JailSpec spec = inside({"write", "/open/deep/new"});
  spec.mounts.push_back({folder / "open", "/open", true});
  spec.mounts.push_back({folder / "shut", "/shut", false});
  EXPECT_EQ(run(spec).out, "ok\n");
  EXPECT_TRUE(fs::exists(folder / "open/deep/new"));
  spec.argv[2] = "/open/deep/old";   // the owner's alone, yet handed over
  EXPECT_EQ(run(spec).out, "ok\n");
  spec.argv[2] = "/shut/new";
  EXPECT_EQ(run(spec).out, "refused: EROFS\n");
  EXPECT_FALSE(fs::exists(folder / "shut/new"));
}

TEST_F(Escape, LinksInAMountLeadNowhereOutside) {
  const fs::path folder = hone::testing::scratch("links");
  const fs::path secret = hone::testing::scratch("linked") / "secret";
  ASSERT_TRUE(write_file_atomic(secret, "s").has_value());
  fs::create_symlink(secret, folder / "absolute");
  fs::create_symlink("../linked/secret", folder / "relative");
  struct stat before = {}, after = {};
  ASSERT_EQ(::stat(secret.c_str(), &before), 0);
  JailSpec spec = inside({"read", "/links/absolute"});
  spec.mounts.push_back({folder, "/links", true});
  EXPECT_EQ(run(spec).out, "refused: ENOENT\n");
  spec.argv[2] = "/links/relative";
  EXPECT_EQ(run(spec).out, "refused: ENOENT\n");
  ASSERT_EQ(::stat(secret.c_str(), &after), 0);
  EXPECT_EQ(before.st_uid, after.st_uid);   // handing a folder over follows no link
}

TEST_F(Escape, PrivilegesAreGone) {
  const std::string facts = say({"facts"});
  EXPECT_NE(facts.find("uid 65533 euid 65533 gid 65533"), std::string::npos) << facts;
  EXPECT_NE(facts.find("caps 000\nbounding 0\nno_new_privs 1\ncore 0\n"), std::string::npos) << facts;
  EXPECT_NE(facts.find("pid 2\nsession 1\n"), std::string::npos) << facts;
  EXPECT_EQ(facts.find("env "), std::string::npos) << facts;
  EXPECT_NE(facts.find("cwd /\n"), std::string::npos) << facts;
}

TEST_F(Escape, SetUidFilesDoNotRaise) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make a set-uid file of root's";
  }
  const fs::path folder = hone::testing::scratch("suid");
  fs::permissions(folder, fs::perms::all);
  fs::copy_file(SANDBOX_INSIDE, folder / "raise");
  ASSERT_EQ(::chmod((folder / "raise").c_str(), 06755), 0);
  JailSpec spec = inside({"suid", "/suid/raise"});
  spec.mounts.push_back({folder, "/suid", false});
  const ProcessOutcome outcome = run(spec);
  EXPECT_NE(outcome.out.find("uid 65533 euid 65533"), std::string::npos) << outcome.out << outcome.exit_code;
}

TEST_F(Escape, ToolsPolicyRefusesByError) {
  for (const char* name :
       {"socket",   "socketpair",       "ptrace",      "traceme", "mount",  "remount",      "umount",     "open_tree",
        "unshare",  "clone-user",       "setns",       "chroot",  "bpf",    "perf",         "keyctl",     "userfaultfd",
        "io_uring", "process_vm_readv", "personality", "mknod",   "setuid", "prlimit-init", "raise-limit"})
    EXPECT_EQ(say({"call", name}), "refused: EPERM\n") << name;
  for (const char* name : {"clone3", "unknown", "memfd"})
    EXPECT_NE(say({"call", name}).find("refused: E"), std::string::npos) << name;
  EXPECT_EQ(say({"call", "unknown"}), "refused: ENOSYS\n");
  for (const char* name : {"fork", "thread", "memory"}) EXPECT_EQ(say({"call", name}), "ok\n") << name;
  EXPECT_EQ(run(inside({"call", "exec"})).exit_code, 0);
}

TEST_F(Escape, ComputePolicyTraps) {
  for (const auto& [name, number] :
       std::vector<std::pair<std::string, std::string>>{{"socket", "socket"},
                                                        {"socketpair", "socketpair"},
                                                        {"ptrace", "ptrace"},
                                                        {"fork", "clone"},
                                                        {"vfork", "vfork"},
                                                        {"exec", "execve"},
                                                        {"exec-keys", "execve"},
                                                        {"execveat", "execveat"},
                                                        {"mount", "mount"},
                                                        {"open_tree", "open_tree"},
                                                        {"unshare", "unshare"},
                                                        {"clone-user", "clone"},
                                                        {"setns", "setns"},
                                                        {"bpf", "bpf"},
                                                        {"perf", "perf_event_open"},
                                                        {"keyctl", "keyctl"},
                                                        {"io_uring", "io_uring_setup"},
                                                        {"process_vm_readv", "process_vm_readv"},
                                                        {"personality", "personality"},
                                                        {"kill-init", "kill"},
                                                        {"kill-all", "kill"},
                                                        {"unlink", "unlink"},
                                                        {"ftruncate", "ftruncate"},
                                                        {"seal", "fcntl"},
                                                        {"chmod-null", "chmod"},
                                                        {"setuid", "setuid"}}) {
    const std::string said = say({"call", name}, SyscallPolicy::compute);
    ASSERT_TRUE(said.starts_with("trapped ")) << name << ": " << said;
    EXPECT_EQ(syscall_name(std::stoi(said.substr(8))), number) << name;
  }
  for (const char* name : {"thread", "memory", "open", "sigaction", "prctl", "affinity"})
    EXPECT_EQ(say({"call", name}, SyscallPolicy::compute), "ok\n") << name;
  EXPECT_EQ(say({"call", "memfd"}, SyscallPolicy::compute), "refused: ENOSYS\n");
}

#ifdef __x86_64__
TEST_F(Escape, OtherSystemCallTablesKill) {
  for (SyscallPolicy policy : {SyscallPolicy::tools, SyscallPolicy::compute}) {
    EXPECT_EQ(run(inside({"call", "int80"}, policy)).signal, SIGSYS);
    const ProcessOutcome x32 = run(inside({"call", "x32"}, policy));
    EXPECT_NE(x32.out, "ok\n");
  }
}
#endif

TEST_F(Escape, ProcessesOutsideAreOutOfReach) {
  EXPECT_EQ(say({"kill", std::to_string(::getpid())}), "refused: ESRCH\n");
  EXPECT_EQ(say({"call", "kill-init"}), "ok\n");   // the signal is allowed, and the kernel drops it
}

TEST_F(Escape, ForkBombIsLimited) {
  JailSpec spec = inside({"fork-bomb"});
  spec.limits.processes = 16;
  EXPECT_EQ(run(spec).out, "EAGAIN after 15\n");
}

TEST_F(Escape, ThreadBombIsLimited) {
  JailSpec spec = inside({"thread-bomb"}, SyscallPolicy::compute);
  spec.limits.processes = 16;
  EXPECT_EQ(run(inside({"workers"}, SyscallPolicy::compute)).exit_code, 0);
  spec.policy = SyscallPolicy::tools;   // its threads pause
  EXPECT_EQ(run(spec).out, "15\n");
}

TEST_F(Escape, MemoryBombIsLimited) {
  for (SyscallPolicy policy : {SyscallPolicy::tools, SyscallPolicy::compute}) {
    JailSpec spec = inside({"memory-bomb"}, policy);
    spec.limits.memory_bytes = std::uint64_t{256} << 20;
    const ProcessOutcome outcome = run(spec);
    ASSERT_TRUE(outcome.out.starts_with("ENOMEM after ")) << outcome.out;
    EXPECT_LT(std::stoull(outcome.out.substr(13)), spec.limits.memory_bytes);
    EXPECT_GT(std::stoull(outcome.out.substr(13)), spec.limits.memory_bytes / 2);
    EXPECT_GT(outcome.max_rss_bytes, spec.limits.memory_bytes / 2);
  }
}

TEST_F(Escape, FilesAreLimited) {
  JailSpec spec = inside({"fill", "/tmp/hone-jail-left-this"});
  spec.limits.file_bytes = 8 << 20;
  spec.limits.tmp_bytes = 64 << 20;
  EXPECT_EQ(run(spec).out, "EFBIG after 8388608\n");
  spec.limits.file_bytes = 64 << 20;
  spec.limits.tmp_bytes = 4 << 20;
  EXPECT_EQ(run(spec).out, "ENOSPC after 4194304\n");
}

TEST_F(Escape, DescriptorsOfTheCallerAreNotInside) {
  const int leak = ::open("/etc/passwd", O_RDONLY);   // not close-on-exec: the careless case
  ASSERT_GE(leak, 0);
  for (SyscallPolicy policy : {SyscallPolicy::tools, SyscallPolicy::compute})
    EXPECT_EQ(say({"descriptors"}, policy), "0 1 2 \n");
  ::close(leak);
}

TEST_F(Escape, OutputOfAGigabyteIsCutOff) {
  JailSpec spec = inside({"flood", std::to_string(std::uint64_t{1} << 30)});
  spec.limits.output_bytes = 1000;
  const ProcessOutcome outcome = run(spec);
  EXPECT_TRUE(outcome.flooded);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(outcome.out.size(), 1000u);
  EXPECT_GT(outcome.out_dropped, std::uint64_t{32} << 20);
  EXPECT_LT(outcome.out_dropped, std::uint64_t{256} << 20);
}

TEST_F(Escape, OrphansEndWithTheProgram) {
  const double start = now_s();
  const ProcessOutcome outcome = run(inside({"orphan", "left"}));   // it holds stdout open
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_LT(now_s() - start, 30);
}

}  // namespace
}  // namespace hone
