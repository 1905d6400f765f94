// Names of system calls, for messages about what a jailed program was stopped at.
#ifndef HONE_SANDBOX_SYSCALLS_H
#define HONE_SANDBOX_SYSCALLS_H

#include <string>

namespace hone {

// "socket" for 41 on x86-64; "system call 9999" for a number without a name. Any number is fine: it
// comes from an untrusted process.
std::string syscall_name(int number);

}  // namespace hone

#endif
