// The parts of hone-jail. Three processes: the monitor (outside, started by Hone) makes the
// namespaces and writes the id maps; the keeper (first process of the new pid namespace) builds the
// root, drops every privilege, starts the program, reaps, and by its own end ends all the others;
// the program limits itself, takes the filter and executes.
#ifndef HONE_SANDBOX_JAIL_JAIL_H
#define HONE_SANDBOX_JAIL_JAIL_H

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "sandbox/jail/wire.h"

namespace hone::jail {

// The program's user and group inside; as root outside too: an id that owns nothing, so that the
// limit on processes binds and file permissions bite. Reserved by Debian policy, below 2^16 so that
// containers with a small id range have it.
inline constexpr unsigned kJailId = 65533;

// Sends the failure and ends this process. `error` is an errno value.
[[noreturn]] void fail(int channel, Fault fault, const char* facility, const std::string& detail, int error);
void send(int channel, const Message& message);

// Keeper: everything below works in the new namespaces, with their capabilities.
void build_root(const Order& order, bool as_root);
void drop_privileges(bool as_root);
// Reaps until `program` ends or the lifeline (or `monitor`, the monitor's pipe) is cut; then kills
// what is left, reports, and does not return.
[[noreturn]] void keep(pid_t program, int monitor);

// Starts the program in a child of this process and reports its start, or fails.
pid_t start_program(const Order& order, int monitor);

// Installs the policy's filter; 0 or an errno value. In the compute policy execve is allowed only
// with `keys` in the three argument registers that the call ignores: the one call of hone-jail knows
// them, the program that it becomes does not.
int load_filter(bool compute, pid_t self, const std::uint64_t (&keys)[3]);

}  // namespace hone::jail

#endif
