// Runs untrusted programs: the compiler on a candidate's sources, plan evaluation, CPU kernels.
//
// A small helper program, hone-jail, makes user, mount, pid, network, ipc, uts and cgroup
// namespaces, a root of its own that holds only the read-only tool folders and the mounts asked
// for, resource limits and a seccomp filter, drops every privilege and starts the program. Nothing
// of the caller's environment, descriptors, network, /proc or files is inside. When the caller
// dies, so does everything in the jail.
//
// It fails closed: where the machine refuses a facility, run and start return kind
// sandbox_unavailable naming the facility and the flag (--sandbox=off) that goes on without. A mount
// whose host path is missing is kind io; a program or folder that is not in the jail, environment.
#ifndef HONE_SANDBOX_SANDBOX_H
#define HONE_SANDBOX_SANDBOX_H

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fs.h"
#include "base/process.h"

namespace hone {

enum class SandboxMode { on, off };

struct JailMount {
  fs::path host;          // an existing file or folder
  std::string inside;     // absolute path in the jail
  bool writable = false;
};

struct JailLimits {
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;   // address space of each process
  std::uint64_t file_bytes = std::uint64_t{256} << 20;   // largest file it may write
  std::uint64_t tmp_bytes = std::uint64_t{256} << 20;    // size of the jail's /tmp
  double cpu_s = 300;
  double wall_s = 300;
  int processes = 64;                                    // processes and threads
  int open_files = 256;
  std::size_t output_bytes = std::size_t{1} << 20;       // kept of each of stdout and stderr
  std::uint64_t flood_bytes = std::uint64_t{64} << 20;   // printed beyond that: everything is killed
};

// What the seccomp filter lets through. `tools` answers what it refuses with an error; `compute` traps
// (signal SIGSYS; a handler of it can read the call's number, see sandbox/syscalls.h for its name).
enum class SyscallPolicy {
  tools,     // compilers and linkers: fork and exec, no sockets, ptrace, mounts, bpf, keys, perf
  compute,   // plan evaluation and kernels: no fork, no exec; memory, threads' futexes, own descriptors
};

struct JailSpec {
  std::vector<std::string> argv;                 // argv[0] is a path inside the jail
  std::vector<std::string> env;                  // everything the program sees
  std::vector<JailMount> mounts;                 // besides the read-only tool folders
  std::string cwd = "/";
  std::string stdin_text;
  JailLimits limits;
  SyscallPolicy policy = SyscallPolicy::tools;
  bool tools = true;                             // mount /usr, /lib*, /bin, /etc/alternatives read-only
  const std::atomic<bool>* cancel = nullptr;
};

// A long-lived program in a jail (the device's runner). `fds` of start are handed on by number, {here,
// there}; there from 3 up. limits.wall_s counts from the start; 0 or less is without end.
class JailedProcess {
 public:
  virtual ~JailedProcess() = default;            // kills everything inside
  virtual pid_t pid() const = 0;                 // the program itself, as seen from here
  virtual bool running() = 0;
  virtual void kill() = 0;                       // SIGKILL to everything inside, and reap
  virtual ProcessOutcome wait(double timeout_s) = 0;   // kills at the end of the time
  virtual std::string output() = 0;              // stdout and stderr so far, bounded by output_bytes
  virtual std::uint64_t output_seen() = 0;       // bytes written so far, kept or not
};

struct SandboxStatus {
  bool available = false;
  std::string refused;      // the facility that the machine refuses: "user namespaces", ...
  std::string reason;       // the system's words
  std::string hint;
};

class Sandbox {
 public:
  // `libexec` holds hone-jail. Mode off: the same limits where they work without privileges, no
  // isolation; every receipt says so.
  static Result<Sandbox> create(SandboxMode mode, const fs::path& libexec);

  SandboxMode mode() const { return mode_; }
  // Tries once, by really starting an empty jail; later calls remember. With mode off: available.
  const SandboxStatus& status() const;

  Result<ProcessOutcome> run(const JailSpec& spec) const;
  Result<std::unique_ptr<JailedProcess>> start(const JailSpec& spec, const std::vector<std::pair<int, int>>& fds) const;

 private:
  Sandbox(SandboxMode mode, fs::path jail);
  Result<ProcessOutcome> run_jail(const JailSpec& spec, SandboxStatus* refusal) const;
  SandboxMode mode_;
  fs::path jail_;
  struct Trial;                                  // status(), once
  std::shared_ptr<Trial> trial_;
};

}  // namespace hone

#endif
