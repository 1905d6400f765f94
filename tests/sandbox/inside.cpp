// Runs inside a jail and tries what its first argument says. Prints "ok ..." or "refused: ERRNO-NAME";
// the tests decide which of the two is right.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/lockdown.h"

namespace {

int say(bool done) {
  if (done)
    std::puts("ok");
  else
    std::printf("refused: %s\n", strerrorname_np(errno));
  return 0;
}
int say_code(long code) { return say(code >= 0); }

std::string argument(char** argv, int i) { return argv[i] != nullptr ? argv[i] : ""; }

int tcp(char** argv) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return say(false);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(argument(argv, 2))));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  return say_code(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to));
}

int abstract_socket(char** argv) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return say(false);
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  const std::string name = argument(argv, 2);
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  return say_code(connect(fd, reinterpret_cast<sockaddr*>(&to),
                          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())));
}

int read_path(char** argv) {
  const int fd = open(argv[2], O_RDONLY);
  char byte;
  return say(fd >= 0 && (read(fd, &byte, 1) >= 0 || errno == EISDIR));
}

int write_path(char** argv) { return say_code(open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644)); }

int list(char** argv) {
  DIR* folder = opendir(argv[2]);
  if (folder == nullptr) return say(false);
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.') std::puts(entry->d_name);
  return 0;
}

int fill(char** argv) {
  const int fd = open(argv[2], O_WRONLY | O_CREAT, 0644);
  if (fd < 0) return say(false);
  signal(SIGXFSZ, SIG_IGN);
  std::vector<char> block(1 << 20, 'x');
  std::uint64_t bytes = 0;
  for (ssize_t n; (n = write(fd, block.data(), block.size())) > 0;) bytes += static_cast<std::uint64_t>(n);
  std::printf("%s after %llu\n", strerrorname_np(errno), static_cast<unsigned long long>(bytes));
  return 0;
}

int fork_bomb(char**) {
  int children = 0;
  pid_t pid = 0;
  while (children < 5000 && (pid = fork()) > 0) ++children;
  if (pid == 0) {
    pause();
    _exit(0);
  }
  std::printf("%s after %d\n", strerrorname_np(errno), children);
  return 0;
}

int thread_bomb(char**) {
  int threads = 0;
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  while (threads < 5000 && pthread_create(
                               &thread, &attributes,
                               [](void*) -> void* {
                                 for (;;) pause();
                               },
                               nullptr) == 0)
    ++threads;
  std::printf("%d\n", threads);
  return 0;
}

int memory_bomb(char**) {
  std::uint64_t bytes = 0;
  constexpr std::size_t kBlock = 16 << 20;
  for (void* block;
       (block = mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED;
       bytes += kBlock)
    std::memset(block, 1, kBlock);
  std::printf("%s after %llu\n", strerrorname_np(errno), static_cast<unsigned long long>(bytes));
  return 0;
}

int flood(char** argv) {
  const std::uint64_t limit = std::stoull(argument(argv, 2));
  const std::vector<char> block(1 << 20, 'y');
  for (std::uint64_t done = 0; done < limit; done += block.size())
    if (write(1, block.data(), block.size()) < 0) return 1;
  return 0;
}

int orphan(char** argv) {   // a grandchild in a session of its own, deaf to everything but SIGKILL
  const char* said = argv[2];
  if (fork() == 0) {
    setsid();
    for (int each = 1; each < 32; ++each) signal(each, SIG_IGN);
    if (fork() == 0) {
      if (said != nullptr) std::printf("%s\n", said), std::fflush(stdout);
      for (;;) sleep(1000);
    }
    _exit(0);
  }
  wait(nullptr);
  return 0;
}

int spin(char**) {
  for (;;) __asm__ volatile("");
}

int stubborn(char**) {
  for (int each = 1; each < 32; ++each) signal(each, SIG_IGN);
  std::puts("ready");
  std::fflush(stdout);
  for (;;) sleep(1000);
}

int facts(char**) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  std::printf("uid %u euid %u gid %u groups %d\n", getuid(), geteuid(), getgid(), getgroups(0, nullptr));
  std::printf("pid %d\nsession %d\n", getpid(), getsid(0) == getpid());
  std::printf("caps %x%x%x\n", data[0].effective | data[1].effective, data[0].permitted | data[1].permitted,
              data[0].inheritable | data[1].inheritable);
  std::printf("bounding %d\nno_new_privs %d\n", prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN),
              prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  rlimit core = {};
  getrlimit(RLIMIT_CORE, &core);
  std::printf("core %llu\n", static_cast<unsigned long long>(core.rlim_max));
  for (char** each = environ; *each != nullptr; ++each) std::printf("env %s\n", *each);
  char cwd[4096];
  std::printf("cwd %s\n", getcwd(cwd, sizeof cwd));
  return 0;
}

int descriptors(char**) {
  for (int fd = 0; fd < 4096; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) std::printf("%d ", fd);
  std::puts("");
  return 0;
}

int echo_descriptors(char** argv) {   // what can be read from each
  for (int i = 2; argv[i] != nullptr; ++i) {
    char text[64] = {};
    const ssize_t n = read(std::stoi(argv[i]), text, sizeof text - 1);
    std::printf("%s=%s\n", argv[i], n < 0 ? strerrorname_np(errno) : text);
  }
  return 0;
}

int suid(char** argv) {   // a copy of a set-uid file must not raise us
  struct stat status = {};
  if (stat(argv[2], &status) != 0) return say(false);
  const pid_t child = fork();
  if (child == 0) {
    execl(argv[2], argv[2], "facts", nullptr);
    _exit(9);
  }
  int code = 0;
  waitpid(child, &code, 0);
  return WIFEXITED(code) ? WEXITSTATUS(code) : 10;
}

int workers(char**) {   // what an OpenMP run time would start
  const unsigned count = std::thread::hardware_concurrency();
  int sum = 0;
  for (unsigned i = 0; i < count; ++i) std::thread([&] { ++sum; }).join();
  std::printf("%d %ld\n", sum, sysconf(_SC_NPROCESSORS_ONLN));
  return 0;
}

void on_trap(int, siginfo_t* info, void*) {
  char text[64];
  const int n = std::snprintf(text, sizeof text, "trapped %d\n", info->si_syscall);
  if (write(1, text, static_cast<std::size_t>(n)) < 0) _exit(3);
  _exit(0);
}

void catch_traps() {
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
}

// Single calls, also used behind the lock-down.
const std::map<std::string, std::function<long()>>& calls() {
  static const std::map<std::string, std::function<long()>> table = {
      {"socket", [] { return socket(AF_INET, SOCK_STREAM, 0); }},
      {"socketpair",
       [] {
         int pair[2];
         return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
       }},
      {"ptrace", [] { return ptrace(PTRACE_ATTACH, 1, nullptr, nullptr); }},
      {"traceme", [] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }},
      {"fork",
       [] {
         const pid_t pid = fork();
         if (pid == 0) _exit(0);
         return pid;
       }},
      {"exec", [] { return execl("/bin/true", "true", nullptr); }},
      {"exec-keys", [] { return syscall(SYS_execve, "/bin/true", nullptr, nullptr, 0, 0, 0); }},
      {"execveat", [] { return syscall(SYS_execveat, AT_FDCWD, "/bin/true", nullptr, nullptr, 0); }},
      {"vfork", [] { return syscall(SYS_vfork); }},
      {"mount", [] { return mount("tmpfs", "/tmp", "tmpfs", 0, nullptr); }},
      {"remount", [] { return mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr); }},
      {"umount", [] { return umount2("/usr", MNT_DETACH); }},
      {"open_tree", [] { return syscall(SYS_open_tree, AT_FDCWD, "/usr", 1); }},
      {"unshare", [] { return unshare(CLONE_NEWUSER); }},
      {"clone-user",
       [] {
         const long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
         if (pid == 0) _exit(0);
         return pid;
       }},
      {"clone3", [] { return syscall(SYS_clone3, nullptr, 0); }},
      {"setns", [] { return setns(0, 0); }},
      {"chroot", [] { return chroot("/tmp"); }},
      {"bpf", [] { return syscall(SYS_bpf, 0, nullptr, 0); }},
      {"perf", [] { return syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0); }},
      {"keyctl", [] { return syscall(SYS_keyctl, 0, -3, 0); }},
      {"userfaultfd", [] { return syscall(SYS_userfaultfd, 0); }},
      {"io_uring", [] { return syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"process_vm_readv", [] { return syscall(SYS_process_vm_readv, 1, nullptr, 0, nullptr, 0, 0); }},
      {"personality", [] { return syscall(SYS_personality, 0x0040000); }},
      {"mknod", [] { return mknod("/tmp/disk", S_IFBLK | 0600, 0x800); }},
      {"setuid", [] { return syscall(SYS_setuid, 0); }},
      {"memfd", [] { return memfd_create("x", 0); }},
      {"unknown", [] { return syscall(9999); }},
      {"kill-init", [] { return kill(1, SIGKILL); }},
      {"kill-all", [] { return kill(-1, 0); }},
      {"prlimit-init",
       [] {
         rlimit value = {0, 0};
         return prlimit(1, RLIMIT_CPU, &value, nullptr);
       }},
      {"raise-limit",
       [] {
         rlimit value = {RLIM_INFINITY, RLIM_INFINITY};
         return setrlimit(RLIMIT_NPROC, &value);
       }},
      {"open", [] { return open("/dev/null", O_RDONLY); }},
      {"unlink", [] { return unlink("/tmp/nothing"); }},
      {"ftruncate", [] { return ftruncate(0, 0); }},
      {"seal", [] { return fcntl(0, F_ADD_SEALS, 0); }},
      {"sigaction",
       [] {
         struct sigaction action = {};
         return sigaction(SIGSEGV, &action, nullptr);
       }},
      {"prctl", [] { return prctl(PR_SET_NAME, "x"); }},
      {"affinity",
       [] {
         cpu_set_t set;
         CPU_ZERO(&set);
         CPU_SET(0, &set);
         return sched_setaffinity(0, sizeof set, &set);
       }},
      {"thread",
       [] {
         pthread_t thread;
         return -pthread_create(
             &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
       }},
      {"memory",
       [] {
         void* block = malloc(64 << 20);
         std::memset(block, 1, 64 << 20);
         free(block);
         return block == nullptr ? -1 : 0;
       }},
      {"chmod-null", [] { return chmod("/dev/null", 0600); }},
#ifdef __x86_64__
      {"int80",
       [] {
         long code;
         __asm__ volatile("int $0x80" : "=a"(code) : "a"(20) : "memory");
         return code;
       }},
      {"x32", [] { return syscall(0x40000000 + SYS_getpid); }},
#endif
  };
  return table;
}

int call(char** argv) {
  catch_traps();
  const auto found = calls().find(argument(argv, 2));
  if (found == calls().end()) return 4;
  return say_code(found->second());
}

// Two worker threads first; then the lock; then the call, from a worker.
int locked(char** argv) {
  catch_traps();
  const auto found = calls().find(argument(argv, 2));
  if (found == calls().end()) return 4;
  volatile bool there = false, go = false;
  std::thread worker([&] {
    there = true;
    while (!go) sched_yield();
    say_code(found->second());
    std::fflush(stdout);
    _exit(0);
  });
  while (!there) sched_yield();   // a thread's start takes calls that the lock forbids
  const int code = hone_lockdown(nullptr, 0);
  if (code != 0) {
    std::printf("no lock: %s\n", strerrorname_np(code));
    std::fflush(stdout);
    _exit(5);
  }
  go = true;
  worker.join();
  return 0;
}

int locked_abort(char**) {
  if (hone_lockdown(nullptr, 0) != 0) return 5;
  abort();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(char**)> table = {
      {"tcp", tcp},
      {"abstract", abstract_socket},
      {"read", read_path},
      {"write", write_path},
      {"list", list},
      {"fill", fill},
      {"fork-bomb", fork_bomb},
      {"thread-bomb", thread_bomb},
      {"memory-bomb", memory_bomb},
      {"flood", flood},
      {"orphan", orphan},
      {"spin", spin},
      {"stubborn", stubborn},
      {"facts", facts},
      {"descriptors", descriptors},
      {"echo", echo_descriptors},
      {"suid", suid},
      {"workers", workers},
      {"call", call},
      {"locked", locked},
      {"locked-abort", locked_abort},
      {"kill", [](char** a) { return say_code(kill(std::stoi(a[2]), 0)); }},
      {"stdin",
       [](char**) {
         std::string text(1 << 20, '\0');
         std::printf("%zu\n", std::fread(text.data(), 1, text.size(), stdin));
         return 0;
       }},
      {"exit", [](char** a) { return std::stoi(a[2]); }},
      {"crash",
       [](char**) {
         raise(SIGSEGV);
         return 0;
       }},
      {"arguments", [](char** a) {
         for (; *a != nullptr; ++a) std::puts(*a);
         return 0;
       }}};
  const auto found = argc > 1 ? table.find(argv[1]) : table.end();
  return found == table.end() ? 99 : found->second(argv);
}
